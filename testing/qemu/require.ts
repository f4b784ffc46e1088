import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

const PROGRAMS = [
  "qemu-system-x86_64",
  "qemu-img",
  "mformat",
  "syslinux",
  "cpio",
  "busybox",
  "dropbear",
  "dropbearconvert",
  "perl",
  "ssh",
];
const INSTALL =
  "apt-get install qemu-system-x86 qemu-utils mtools dosfstools syslinux syslinux-common cpio busybox-static dropbear-bin openssh-client";

/** As `requireSshd`, for `describe.skipIf(requireQemu())`: writes the reason to stderr, and is an error in CI. */
export function requireQemu(): string | undefined {
  const missing = PROGRAMS.filter((program) => !installed(program));
  if (missing.length === 0) return undefined;
  const line = `tests of local machines need ${missing.join(", ")}. Run: ${INSTALL}`;
  if (process.env.CI) throw new Error(line);
  process.stderr.write(`SKIPPED: ${line}\n`);
  return line;
}

function installed(program: string): boolean {
  const path = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  return path.some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
