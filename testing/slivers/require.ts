import { existsSync } from "node:fs";
import { join } from "node:path";

const NEEDED = ["lxc-start", "lxcfs", "mkfs.btrfs", "nft", "mmdebstrap", "tc"];

/** Why slivers cannot be made here; undefined: they can. In CI nothing may be skipped for it. */
export function whyNot(): string | undefined {
  const missing = NEEDED.filter((name) =>
    ["/usr/bin", "/usr/sbin", "/sbin", "/bin"].every((folder) => !existsSync(join(folder, name))),
  );
  const why =
    process.getuid!() === 0 ? (missing.length === 0 ? undefined : `no ${missing.join(", ")}`) : "not root";
  if (why !== undefined && process.env.CI === "true") return undefined;
  if (why !== undefined) console.error(`SKIPPED: tests that make real slivers (${why})`);
  return why;
}
