import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

export const SSHD = "/usr/sbin/sshd";

/** What is missing on this machine for a real sshd, or undefined. */
export function missingSshd(): string | undefined {
  if (!runs(SSHD)) return SSHD;
  const path = (process.env.PATH ?? "").split(delimiter);
  return path.some((folder) => runs(join(folder, "ssh-keygen"))) ? undefined : "ssh-keygen";
}

/** As `requireZooKeeper`, for `describe.skipIf(requireSshd())`: writes the reason to stderr, and is an error in CI. */
export function requireSshd(): string | undefined {
  const missing = missingSshd();
  if (missing === undefined) return undefined;
  const line = `SSH tests need ${missing}. Run: apt-get install openssh-server openssh-client`;
  if (process.env.CI) throw new Error(line);
  process.stderr.write(`SKIPPED: ${line}\n`);
  return line;
}

function runs(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
