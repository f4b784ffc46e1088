import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

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

/** What is missing on this machine for a real build, in one line; undefined: nothing. In CI this is an error. */
export function requireDiskimageBuilder(): string | undefined {
  const lacking = ["disk-image-create", "qemu-img", "losetup", "busybox", "sshd"].filter(
    (program) =>
      spawnSync("/bin/sh", ["-c", `command -v ${program}`], { env: { PATH: BUILD_PATH } }).status !== 0,
  );
  if (process.getuid?.() !== 0) lacking.push("root");
  if (lacking.length === 0) return undefined;
  const line = `diskimage-builder is not tried, for lack of ${lacking.join(", ")}. Run as root: apt-get install python3-diskimage-builder qemu-utils busybox-static openssh-server`;
  if (process.env.CI) throw new Error(line);
  process.stderr.write(`SKIPPED: ${line}\n`);
  return line;
}
