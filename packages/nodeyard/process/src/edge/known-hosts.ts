import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * A file for ssh with the host keys that were read from a node when it was made. In a folder of its own, that only this user can
 * enter. `remove` may be called twice.
 */
export function makeKnownHosts({
  interface_ip: address,
  connection_port: port,
  host_keys: hostKeys,
}: {
  readonly interface_ip: string | null;
  readonly connection_port: number | null;
  readonly host_keys: readonly string[];
}): {
  readonly file: string;
  remove(): void;
} {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-"));
  const file = join(folder, "known_hosts");
  // sshd(8), SSH_KNOWN_HOSTS FILE FORMAT: the usual port is never written.
  const name = port === 22 ? address : `[${address}]:${port}`;
  writeFileSync(file, hostKeys.map((key) => `${name} ${key}\n`).join(""), { mode: 0o600 });
  return { file, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
