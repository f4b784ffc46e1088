import { messageOf, type Reader } from "@nodeyard/driver";
import { NODE_ID, type SshTarget, sshArguments, sshKey } from "@nodeyard/sliver-protocol";
import type { MachineAt } from "../own.ts";

/** The machines that can be used; everything else is an error at its place. */
export function readMachines(from: Reader): readonly MachineAt[] {
  const listed = from.mappings("machines");
  const machines = listed.flatMap((at) => readMachine(at) ?? []);
  if (listed.length === 0) from.error("machines", "names no machine; add one");
  const names = machines.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) from.error("machines", `names ${twice} twice; each machine has a name of its own`);
  return machines;
}

function readMachine(at: Reader): MachineAt | undefined {
  const name = at.needed("name");
  if (name === undefined) return undefined;
  if (!NODE_ID.test(name)) {
    at.error("name", `is ${name}, which is not a node id; write letters, digits and .:_-`);
    return undefined;
  }
  if (at.has("socket") === at.has("host")) {
    at.error(undefined, "needs exactly one of socket and host");
    return undefined;
  }
  const socket = absolute(at, "socket");
  const address = at.text("address", null);
  if (at.has("socket")) return socket === undefined ? undefined : { name, at: { socket }, address };
  const ssh = readSsh(at);
  return ssh === undefined ? undefined : { name, at: { ssh }, address: address ?? ssh.host };
}

function readSsh(at: Reader): SshTarget | undefined {
  const [host, identityFile] = [at.needed("host"), absolute(at, "identity-file")];
  if (!at.has("identity-file"))
    at.error("identity-file", "is missing; name the private key of the control account");
  if (!at.has("host-keys"))
    at.error("host-keys", "is missing; ssh-keyscan prints them; check them with the machine's owner");
  if (host === undefined || identityFile === undefined || !at.has("host-keys")) return undefined;
  const user = at.text("user", null);
  const target = {
    host,
    port: at.number("port", 22),
    ...(user === null ? {} : { user }),
    identityFile,
    hostKeys: at.texts("host-keys"),
  };
  try {
    for (const key of target.hostKeys) sshKey(key);
    // What ssh would take for something else is found here, and not at the first call.
    sshArguments(target, "");
    return target;
  } catch (error) {
    at.error(undefined, messageOf(error));
    return undefined;
  }
}

function absolute(at: Reader, key: string): string | undefined {
  const path = at.text(key, null);
  if (path === null || path.startsWith("/")) return path ?? undefined;
  at.error(key, `is ${path}, which is a relative path; write an absolute one`);
  return undefined;
}
