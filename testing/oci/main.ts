/**
 * `npm run test:oci`: builds the images of launcher and all in one (`-- FOLDER`: takes those that are in it), and runs them with podman as
 * docs/how-to/install.md says: a read-only root, no capabilities, a user that is not root. Needs root, mmdebstrap, podman and runc.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "../../tools/build/build.ts";
import { ociImages } from "../../tools/build/oci.ts";
import { checkImages } from "./images.ts";

const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const folder = mkdtempSync(join(tmpdir(), "nodeyard-oci-"));
try {
  const given = process.argv[2];
  if (given === undefined) {
    mkdirSync(join(root, ".tmp"), { recursive: true });
    await build(root);
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    for (const file of ociImages(root, folder, version, ["nodeyard", "nodeyard-launcher"]))
      console.log(`built ${file}`);
  } else cpSync(given, folder, { recursive: true });
  await checkImages(root, folder, console.log);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
