/**
 * `npm run build [-- --verify]`: builds the packages into their `dist`, and the programs of a sliver host into one folder of the sliver
 * package's `dist`; with --verify installs and runs the result. `-- --bundle FOLDER`: only these programs, into FOLDER.
 */
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "./build.ts";
import { bundle, verifyBundle } from "./bundle.ts";
import { verify } from "./verify.ts";

const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const only = process.argv.indexOf("--bundle");
try {
  if (only > 0) {
    const folder = process.argv[only + 1];
    if (folder === undefined) throw new Error("--bundle names no folder");
    verifyBundle(await bundle(root, folder), tmpdir());
    process.exit(0);
  }
  const dists = await build(root);
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
