import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Transport } from "../client.ts";
import { GrammarError, SliverUnreachableError } from "../errors.ts";
import { sshKey } from "../grammar.ts";
import { commandTransport } from "./transports.ts";

/** Where a sliver manager's control account is reached. */
export interface SshTarget {
  /** Name or address. */
  readonly host: string;
  readonly port?: number;
  /** The Unix user of the control accounts. */
  readonly user?: string;
  /** Private key whose forced command calls the manager; only its owner may read it. */
  readonly identityFile: string;
  /** The machine's host keys, `type base64` each; no other machine is spoken to. */
  readonly hostKeys: readonly string[];
  /** Seconds until the machine must have answered at all, and between two signs of life. */
  readonly patience?: number;
  /** The client program. */
  readonly ssh?: string;
}

/** User of the control accounts where nothing else is said. */
export const CONTROL_USER = "nodeyard-control";

/** What a machine is called in the file of known keys, so that address and port are no part of who it is. */
const ALIAS = "nodeyard-sliver-host";

/**
 * Through the SSH client of this machine, without any user's configuration. A call is a connection: nothing stays open that could outlive
 * this process. The call ends with its signal. Throws GrammarError for a target that ssh would take for something else.
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
      return await commandTransport([target.ssh ?? "ssh", ...sshArguments(target, file)])(text, signal);
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
  // The server runs the key's own command; the word is for a key that has none, which then does nothing.
  return ["-F", "none", "-T", ...words, "-p", String(port), "-l", user, "--", host, "true"];
}

/** As ssh_config wants a path: `%` would begin a token, a blank end it. */
function quoted(path: string): string {
  if (/["\n\0]/.test(path)) throw new GrammarError(`${JSON.stringify(path)} cannot be passed to ssh`);
  return `"${path.replaceAll("%", "%%")}"`;
}
