/**
 * Why `btrfs qgroup destroy` (btrfs-progs 6, locale C) did not do it: the group is not there, or it counts something still.
 * Undefined: for any other reason, also when it is the pool that is not there.
 */
export function readRefusal(message: string): "gone" | "busy" | undefined {
  const [, reason] = /unable to destroy quota group: (.+?)\s*$/m.exec(message) ?? [];
  if (reason === "No such file or directory") return "gone";
  if (reason === "Device or resource busy") return "busy";
  return undefined;
}
