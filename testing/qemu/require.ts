import { requireTools } from "../skipped.ts";

const PROGRAMS = [
  "qemu-system-x86_64",
  "qemu-img",
  "mformat",
  "/usr/sbin/mkfs.fat",
  "syslinux",
  "/usr/lib/syslinux/modules/bios/ldlinux.c32",
  "cpio",
  "busybox",
  "dropbear",
  "dropbearconvert",
  "perl",
  "ssh",
];

/** For `describe.skipIf(requireQemu())`: why no virtual machine can be made and started, or undefined. */
export const requireQemu = () => requireTools("tests of local machines", ...PROGRAMS);
