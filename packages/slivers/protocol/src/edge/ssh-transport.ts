import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Transport } from "../client.ts";
import { GrammarError, SliverUnreachableError } from "../errors.ts";
import { sshKey } from "../grammar.ts";
import { commandTransport } from "./transports.ts";

/** Address of a sliver manager's control account. */
export interface SshTarget {
  /** Host name or address. */
  readonly host: string;
  readonly port?: number;
  /** The Unix user of the control accounts. */
  readonly user?: string;
  /** Private key for the control account. Only its owner may read the file. */
  readonly identityFile: string;
  /** The machine's host keys, `type base64` each. Connections to a machine with other keys fail. */
  readonly hostKeys: readonly string[];
  /** Seconds for connecting, and between two keep-alive messages. */
  readonly patience?: number;
}

/** Default user of the control accounts. */
export const CONTROL_USER = "nodeyard-control";

/** Host alias in the file of known keys, so that the identity of a machine does not depend on its address and port. */
const ALIAS = "nodeyard-sliver-host";

/**
 * A transport through this host's ssh program, without any user's configuration. Each call is a connection of its own, so that none
 * outlives this process. The call ends with its signal. Throws GrammarError for a target that ssh would interpret as something else.
 */
export function sshTransport(target: SshTarget): Transport {
  const known = target.hostKeys.map((key) => `${ALIAS} ${sshKey(key)}\n`).join("");
  if (known === "") throw new GrammarError(`no host key of ${target.host} is given; ssh-keyscan prints them`);
  return async (text, signal) => {
    let folder: string | undefined;
    try {
      folder = await mkdtemp(join(tmpdir(), "nodeyard-ssh-"));
      const file = join(folder, "known_hosts");
      await writeFile(file, known, { mode: 0o600 });
      return await commandTransport(["ssh", ...sshArguments(target, file)])(text, signal);
    } catch (cause) {
      if (cause instanceof SliverUnreachableError) throw cause;
      throw new SliverUnreachableError(`cannot begin a call to ${target.host}: ${(cause as Error).message}`, {
        cause,
      });
    } finally {
      if (folder !== undefined) await rm(folder, { recursive: true, force: true });
    }
  };
}

/** Exported for its test. */
export function sshArguments(target: SshTarget, knownHosts: string): string[] {
  const { host, port = 22, user = CONTROL_USER, identityFile, patience = 10 } = target;
  if (!/^[A-Za-z0-9:][A-Za-z0-9.:%_-]{0,254}$/.test(host))
    throw new GrammarError(`${JSON.stringify(host)} is not a host name or address`);
  if (!/^[a-z_][a-z0-9_-]{0,31}$/.test(user)) throw new GrammarError(`${JSON.stringify(user)} is not a user`);
  const options = {
    BatchMode: "yes",
    StrictHostKeyChecking: "yes",
    HostKeyAlias: ALIAS,
    UserKnownHostsFile: quoted(knownHosts),
    GlobalKnownHostsFile: "none",
    UpdateHostKeys: "no",
    IdentitiesOnly: "yes",
    IdentityFile: quoted(identityFile),
    IdentityAgent: "none",
    PreferredAuthentications: "publickey",
    ClearAllForwardings: "yes",
    ConnectTimeout: String(patience),
    ServerAliveInterval: String(patience),
    ServerAliveCountMax: "3",
    LogLevel: "ERROR",
  };
  const words = Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  // The server runs the key's forced command. For a key without one, the command `true` does nothing.
  return ["-F", "none", "-T", ...words, "-p", String(port), "-l", user, "--", host, "true"];
}

/** Quotes a path for ssh_config, where `%` starts a token and a space ends the path. */
function quoted(path: string): string {
  if (/["\n\0]/.test(path)) throw new GrammarError(`${JSON.stringify(path)} cannot be passed to ssh`);
  return `"${path.replaceAll("%", "%%")}"`;
}
