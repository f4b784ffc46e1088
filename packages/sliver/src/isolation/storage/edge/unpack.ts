import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../../edge/run.ts";
import { CommandError, ImageError } from "../../errors.ts";

/** Without them a root cannot be a sliver's. */
const NEEDED = ["usr/sbin/sshd", "usr/bin/setpriv"];

/**
 * Unpacks an archive into a new subvolume, and makes that read only. An archive is hostile: GNU tar, which is run as root
 * here, takes names as relative, refuses those with `..`, writes through no link that it unpacked, and fails when it left
 * something out. No device node stays: a sliver's are made by LXC. Set-uid programs stay set-uid, for ids that are
 * nobody's on this machine, in a pool that nobody else can enter. It takes at most `room` bytes. Throws ImageError, CommandError.
 */
export async function unpack(
  name: string,
  tar: string,
  root: string,
  room: number,
  signal: AbortSignal,
): Promise<void> {
  await run(["btrfs", "subvolume", "create", root], { signal });
  await run(["btrfs", "qgroup", "limit", String(room), root], { signal });
  const words = ["--numeric-owner", "--xattrs", "--same-permissions", "--delay-directory-restore"];
  await run(["tar", "-x", ...words, "-f", tar, "-C", root], { signal, diesWithUs: true }).catch((cause) => {
    if (!(cause instanceof CommandError)) throw cause;
    throw new ImageError(`image ${name} cannot be unpacked from ${tar}: ${cause.message}`, { cause });
  });
  await run(["find", root, "-xdev", "(", "-type", "b", "-o", "-type", "c", ")", "-delete"], { signal });
  for (const program of NEEDED)
    if (!(await isWithin(root, program))) throw new ImageError(`image ${name} has no /${program}`);
  await run(["btrfs", "property", "set", root, "ro", "true"], { signal });
}

/** Whether the image has it itself: a link of an image is not followed into the machine's own files. */
async function isWithin(root: string, path: string): Promise<boolean> {
  let at = root;
  for (const part of path.split("/")) {
    at = join(at, part);
    const info = await lstat(at).catch(() => undefined);
    if (info === undefined) return false;
    // /usr/sbin may be a link to /usr/bin, as other systems have it: inside it is good, from here nobody looks.
    if (info.isSymbolicLink()) return true;
  }
  return true;
}
