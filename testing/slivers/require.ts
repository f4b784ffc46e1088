import { requireRoot, requireTools } from "../skipped.ts";

const NEEDED = ["lxc-start", "lxcfs", "mkfs.btrfs", "/usr/sbin/nft", "mmdebstrap", "/usr/sbin/tc"];

/** Why slivers cannot be made here; undefined: they can. */
export const whyNot = () => requireRoot() ?? requireTools("tests that make real slivers", ...NEEDED);
