/**
 * `npm run test:oci`: builds the images of launcher and all in one, and runs them with podman as docs/how-to/install.md says: a read-only
 * root, no capabilities, a user that is not root. Needs root, mmdebstrap, podman and runc.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "../../tools/build/build.ts";
import { checkImages } from "./images.ts";

const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const folder = mkdtempSync(join(tmpdir(), "nodeyard-oci-"));
try {
  mkdirSync(join(root, ".tmp"), { recursive: true });
  await build(root);
  await checkImages(root, folder, console.log);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
