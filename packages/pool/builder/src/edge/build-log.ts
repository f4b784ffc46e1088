import { constants, watch } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { BuildLogPart, BuildLogRange } from "@nodeyard/asking";
import type { Clock } from "@nodeyard/runtime";
import { baseName } from "../core/files.ts";

/**
 * A part of the log of a build in `folder`; undefined: it is not there. A character that the part would cut is left for the next.
 * Without `from` it is the end of the log. Rejects with errors of the file system.
 */
export async function readBuildLog(folder: string, range: BuildLogRange): Promise<BuildLogPart | undefined> {
  const path = join(folder, `${baseName(range.image, range.build)}.log`);
  // Build logs are regular files; anything else is not read.
  await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  );
  if (file === undefined) return undefined;
  const facts = await file.stat();
  if (!facts.isFile()) return undefined;
  const { size } = facts;
  const from = Math.min(size, range.from ?? Math.max(0, size - range.limit));
  const { buffer, bytesRead } = await file.read(
    Buffer.alloc(Math.min(range.limit, size - from)),
    0,
    undefined,
    from,
  );
  const read = buffer.subarray(0, bytesRead);
  // The end of the log begins with a whole character; a part that is asked for begins where it was asked for.
  const skipped = range.from === undefined && from > 0 ? read.findIndex((byte) => (byte & 0xc0) !== 0x80) : 0;
  const bytes = read.subarray(Math.max(0, skipped), wholeCharacters(read));
  const start = from + Math.max(0, skipped);
  return { text: bytes.toString(), from: start, next: start + bytes.length, size };
}

/** Resolves when the log is longer than `size`, which a file watch reports, or after `ms` milliseconds. */
export function untilLogGrows(
  folder: string,
  { image, build }: Pick<BuildLogRange, "image" | "build">,
  size: number,
  { clock, ms }: { readonly clock: Pick<Clock, "setTimer">; readonly ms: number },
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = clock.setTimer(ms, resolve);
  const look = async () => {
    const part = await readBuildLog(folder, { image, build, from: 0, limit: 0 });
    if (part === undefined || part.size > size) resolve();
  };
  try {
    const watcher = watch(join(folder, `${baseName(image, build)}.log`), () => void look());
    watcher.once("error", () => resolve());
    void promise.then(() => watcher.close());
    // Look once now, for writes before the watch began.
    void look();
  } catch {
    resolve();
  }
  return promise.finally(() => timer.cancel());
}

/** How many of the bytes are whole characters of UTF-8 (RFC 3629); all, where they are none: a build may write anything. */
function wholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back]!;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
