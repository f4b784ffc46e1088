import { describe, expect, test } from "vitest";
import { type Cache, committed, overflow, refusalOf, startOf } from "../../src/isolation/storage/caches.ts";
import { ENDED, VOLUME } from "./machine/cache-once.ts";

const MIB = 1_048_576;
const cache: Cache = {
  ...{ name: "build", key: ["lab", "acme"], version: "a", bytes: MIB, began: 100, committed: 200, by: "one" },
  ...{ used: 200, hits: 0, lost: 0, pinned: false },
};

describe("what is decided about caches", () => {
  test("a copy begins empty, and says why, where the cache is nobody's, too old, or larger than it may be", () => {
    const why = (some: object, of: Cache | undefined = cache, now = 300) =>
      startOf({ ...VOLUME, key: ["lab", "acme"], ...some }, of, now).why;
    expect(why({})).toBeUndefined();
    expect(why({ key: undefined })).toMatch(/does not say whose/);
    expect(startOf(VOLUME, undefined, 7)).toEqual({
      began: 7,
      why: "this machine has no cache build of lab/acme/small",
    });
    expect(why({ maxAge: 200 })).toBeUndefined();
    expect(why({ maxAge: 199 })).toBe("the cache began 200 s ago, and may be 199 s old");
    expect(why({ size: 1024 }, { ...cache, bytes: MIB + 1 })).toMatch(/may have 1048576/);
  });

  test("only a sliver of which somebody said that it ended well leaves one, and only what is whole", () => {
    const of = (some: object, bytes = MIB) => refusalOf({ ...VOLUME, ...ENDED, ...some }, bytes);
    expect(of({})).toBeUndefined();
    for (const commit of ["never", "success", "always"] as const)
      expect(of({ commit })).toBe("nobody said that it ended well");
    expect(of({ key: undefined })).toBe("it is nobody's cache");
    expect(of({ memoryKills: 1 })).toBe("its memory was full");
    expect(of({ starts: 2 })).toBe("it was started 2 times");
    expect(of({}, 15 * MIB + 1)).toBe("its cache was full");
  });

  test("a version that did not come of the one before replaces it and is counted; its age is its ancestors'", () => {
    const left = { version: "b", bytes: 5, by: "two" };
    const after = (base: string | undefined) =>
      committed({ ...cache, hits: 3, pinned: true }, VOLUME, { base, began: 50 }, left, 400);
    expect(after("a")).toMatchObject({ ...left, began: 50, committed: 400, hits: 3, lost: 0, pinned: true });
    expect(after(undefined).lost).toBe(1);
    expect(committed(undefined, VOLUME, { base: undefined, began: 50 }, left, 400)).toMatchObject({
      lost: 0,
    });
  });

  test("the least recently used go until the others have room and are not too many, and none that is pinned", () => {
    const all = new Map(
      [300, 100, 200, 50].map((used, at) => [`${at}`, { ...cache, used, pinned: used === 50 }] as const),
    );
    expect(overflow(all, 4 * MIB)).toEqual([]);
    expect(overflow(all, 3 * MIB)).toEqual(["1"]);
    expect(overflow(all, 2 * MIB - 1)).toEqual(["1", "2", "0"]);
    expect(overflow(all, 0)).toEqual(["1", "2", "0"]);
    expect(overflow(all, 4 * MIB, 2)).toEqual(["1", "2"]);
    const many = new Map(
      Array.from({ length: 1_002 }, (_, at) => [`${at}`, { ...cache, bytes: 0, used: at }]),
    );
    expect(overflow(many, 0)).toEqual(["0", "1"]);
  });
});
