import { requireRoot, requireTools } from "../skipped.ts";

const PROGRAMS = [
  "/usr/bin/lxd",
  "lxc",
  "busybox",
  "dropbear",
  "unshare",
  "/usr/sbin/tc",
  "ssh",
  "openssl",
  "qemu-img",
];

/** For `describe.skipIf(requireLxd())`: why no LXD can be started, or undefined. */
export const requireLxd = () => requireRoot() ?? requireTools("tests of LXD", ...PROGRAMS);
