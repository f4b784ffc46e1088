import { createHash } from "node:crypto";
import type { CacheReport, SliverVolume } from "@nodeyard/sliver-protocol";
import { z } from "zod";

const whole = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

/** What is stored of a cache. Its id is the name of the file. */
export const cacheSchema = z.strictObject({
  name: z.string(),
  key: z.array(z.string()),
  /** Name of the subvolume with its content. */
  version: z.string(),
  bytes: whole,
  began: whole,
  committed: whole,
  by: z.string(),
  used: whole,
  hits: whole,
  lost: whole,
  pinned: z.boolean(),
});
/** What is stored of a cache; times are seconds since the Unix epoch. */
export type Cache = Readonly<z.output<typeof cacheSchema>>;

/** How a copy begins: of a version, or empty. */
export interface Start {
  /** Bytes of the version that it is a copy of, and that version's name. */
  readonly from?: number;
  readonly base?: string;
  /** When its first ancestor began empty, seconds since the Unix epoch. */
  readonly began: number;
  /** Why it is empty. */
  readonly why?: string;
}

/** A copy of a cache in a sliver, as its mark keeps it; without `began` it is not made yet. */
export type Volume = SliverVolume & Partial<Start>;

/** The name is part of it: a label may have several caches of one key. */
export function cacheId({ name, key = [] }: Pick<SliverVolume, "name" | "key">): string {
  return createHash("sha256")
    .update(JSON.stringify([name, ...key]))
    .digest("hex")
    .slice(0, 32);
}

/** The version that a sliver gets a copy of; without one it says why. `now` in seconds. */
export function startOf(
  { name, key, size, maxAge }: SliverVolume,
  cache: Cache | undefined,
  now: number,
): Start {
  const empty = (why: string) => ({ began: now, why });
  if (key === undefined) return empty("its request does not say whose cache it may use");
  if (cache === undefined) return empty(`this machine has no cache ${name} of ${keyText(key)}`);
  if (maxAge !== undefined && now - cache.began > maxAge)
    return empty(`the cache began ${now - cache.began} s ago, and may be ${maxAge} s old`);
  if (cache.bytes > size * 1024)
    return empty(`the cache has ${cache.bytes} bytes, and may have ${size * 1024}`);
  return { from: cache.bytes, base: cache.version, began: cache.began };
}

/** The facts of an ended sliver that decide whether it leaves its copy as the cache. */
export interface Ended extends Pick<SliverVolume, "key" | "commit" | "size"> {
  /** Processes that the kernel killed in it for lack of memory. */
  readonly memoryKills: number;
  /** How often it was started: what a second start found was left by processes that were killed. */
  readonly starts: number;
}

/** Why it leaves nothing; undefined: it leaves its copy. `bytes`: what is in the copy. */
export function refusalOf(ended: Ended, bytes: number): string | undefined {
  const { key, commit, size, memoryKills, starts } = ended;
  if (commit !== "at-end") return "nobody said that it ended well";
  if (key === undefined) return "it is nobody's cache";
  if (memoryKills > 0) return "its memory was full";
  if (starts > 1) return `it was started ${starts} times`;
  return bytes > size * 1024 - margin(size) ? "its cache was full" : undefined;
}

/** Bytes below its limit from which on a cache is full: a write that was refused may have been larger than what was left. */
function margin(size: number): number {
  return Math.max(1_048_576, size * 16);
}

/** The cache after a sliver has left a version. One that came of another version than the present one replaces it all the same. */
export function committed(
  before: Cache | undefined,
  { name, key = [] }: Pick<SliverVolume, "name" | "key">,
  { base, began }: { readonly base: string | undefined; readonly began: number },
  left: Pick<Cache, "version" | "bytes" | "by">,
  now: number,
): Cache {
  const lost = (before?.lost ?? 0) + (before !== undefined && before.version !== base ? 1 : 0);
  const { hits = 0, pinned = false } = before ?? {};
  return { name, key: [...key], ...left, began, committed: now, used: now, hits, lost, pinned };
}

/** The most caches of a machine. Each is a subvolume and a part of every report, and requests choose how many keys there are. */
const MOST_CACHES = 1_000;

/** The caches to delete so that `most` are left and all take `room` bytes at most: the least recently used first, and none that is pinned. */
export function overflow(caches: ReadonlyMap<string, Cache>, room: number, most = MOST_CACHES): string[] {
  let sum = [...caches.values()].reduce((all, { bytes }) => all + bytes, 0);
  let count = caches.size;
  const oldest = [...caches].filter(([, { pinned }]) => !pinned).sort(([, a], [, b]) => a.used - b.used);
  return oldest.flatMap(([id, { bytes }]) => {
    if (sum <= room && count <= most) return [];
    sum -= bytes;
    count -= 1;
    return [id];
  });
}

/** A cache as reports have it. */
export function reportOf(id: string, { version: _, ...cache }: Cache): CacheReport {
  return { id, ...cache };
}

function keyText(key: readonly string[]): string {
  return key.filter((part) => part !== "").join("/");
}
