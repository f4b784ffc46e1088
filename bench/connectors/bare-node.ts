import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Sshd } from "../../testing/sshd/index.ts";

/** Starts a program on a node without a pool, by the ssh that connectors use: what it needs comes on stdin. Resolves when it has ended. */
export function startBare(sshd: Sshd, key: string, start: string, input: string): Promise<void> {
  const hosts = join(sshd.folder, "known_hosts");
  writeFileSync(hosts, `[${sshd.host}]:${sshd.port} ${sshd.hostKeys[0]}\n`);
  const options = ["BatchMode=yes", `UserKnownHostsFile=${hosts}`, "IdentitiesOnly=yes", "ControlPath=none"];
  const child = spawn(
    "ssh",
    [
      ...options.flatMap((option) => ["-o", option]),
      ...["-i", key, "-p", String(sshd.port), sshd.host],
      `cd "$(mktemp -d)" && cat >input && { ${start}; }; rm -rf "$PWD"`,
    ],
    { stdio: ["pipe", "ignore", "inherit"] },
  );
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => resolve());
  });
}
