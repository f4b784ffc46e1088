import { fileURLToPath } from "node:url";
import { requireRoot, requireTools } from "../skipped.ts";

const HERE = fileURLToPath(new URL(".", import.meta.url));

/** Those for tests, and those that the repository offers; joined as `elements-dir` has them. */
export const ELEMENTS = [`${HERE}elements`, fileURLToPath(new URL("../../elements", import.meta.url))].join(
  ":",
);
/**
 * With replacements for tools that kernels may not support, and without a Python environment: the module is installed for the system's
 * Python.
 */
export const BUILD_PATH = `${HERE}shim:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin`;

/** For `test.skipIf(requireDiskimageBuilder())`: why no image can be built, or undefined. */
export const requireDiskimageBuilder = () =>
  requireRoot() ??
  requireTools(
    "tests of diskimage-builder",
    "disk-image-create",
    "qemu-img",
    "losetup",
    "busybox",
    "/usr/sbin/sshd",
  );
