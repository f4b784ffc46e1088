import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { EnrolError } from "../errors.ts";

/** The name of a bundle says what is in it: its version, and a digest of its programs and its runtime. */
export function bundleName(folder: string): string {
  const list = join(folder, "bundle.json");
  const node = join(folder, "node");
  if (!existsSync(list) || !existsSync(node))
    throw new EnrolError(
      `${folder} holds no bundle with a runtime; start this through nodeyard sliverd install`,
    );
  const text = readFileSync(list, "utf8");
  const { version } = JSON.parse(text) as { version: string };
  if (!/^[0-9A-Za-z.+-]{1,40}$/.test(version)) throw new EnrolError(`${list} names no version`);
  // The runtime by its size: reading 120 MB at each look would cost more than it tells.
  const digest = createHash("sha256")
    .update(`${text} ${process.version} ${statSync(node).size}`)
    .digest("hex");
  return `${version}-${digest.slice(0, 12)}`;
}
