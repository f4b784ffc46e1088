import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NodeRecord } from "@nodeyard/model";

/**
 * A file for ssh with the host keys that were read from a node when it was made. In a folder of its own, that only this user can
 * enter. `remove` may be called twice.
 */
export function makeKnownHosts({
  interfaceIp,
  connectionPort,
  hostKeys,
}: Pick<NodeRecord, "interfaceIp" | "connectionPort" | "hostKeys">): {
  readonly file: string;
  remove(): void;
} {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-"));
  const file = join(folder, "known_hosts");
  // sshd(8), SSH_KNOWN_HOSTS FILE FORMAT: the usual port is never written.
  const name = connectionPort === 22 ? interfaceIp : `[${interfaceIp}]:${connectionPort}`;
  writeFileSync(file, hostKeys.map((key) => `${name} ${key}\n`).join(""), { mode: 0o600 });
  return { file, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
