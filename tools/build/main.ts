/**
 * `npm run build [-- --verify]`: builds the packages into their `dist`, and what a sliver host needs into one folder of
 * that of the sliver package; with --verify installs and runs the result.
 */
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "./build.ts";
import { bundle, verifyBundle } from "./bundle.ts";
import { verify } from "./verify.ts";

const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
try {
  const dists = build(root);
  console.log(`built ${dists.map((dist) => relative(root, dist)).join(", ")}`);
  const programs = await bundle(root, join(root, "packages/sliver/dist/bundle"));
  console.log(`bundled ${relative(root, programs)}`);
  if (process.argv.includes("--verify"))
    for (const what of [...verify(root, dists), ...verifyBundle(programs, tmpdir())])
      console.log(`works when installed: ${what}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
