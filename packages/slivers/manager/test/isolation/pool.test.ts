import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VirtualClock } from "@nodeyard/runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { requireTools } from "../../../../../testing/skipped.ts";
import { Pool } from "../../src/isolation/storage/edge/pool.ts";

const { signal } = new AbortController();
/** More than any file system takes: without a look before, it is refused at once all the same. */
const TOO_MUCH = Number.MAX_SAFE_INTEGER;
/** Less than a btrfs needs. */
const TOO_LITTLE = 1_048_576;

describe("a pool that cannot be made", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-pool-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const poolOf = (bytes: number) =>
    new Pool(join(folder, "pool"), join(folder, "pool.img"), bytes, {
      clock: new VirtualClock(),
      onProgress: () => undefined,
    });

  test("does not begin to take what is not there, and says how much it needs, how much is free, and where", async () => {
    const text = `the pool needs ${TOO_MUCH} bytes in ${folder} and leaves \\d+ free beside it; \\d+ are free: make room`;
    await expect(poolOf(TOO_MUCH).prepare(signal)).rejects.toThrow(new RegExp(text));
    expect(readdirSync(folder)).toEqual(["pool"]);
  });

  test("promises what its file has, whatever size is asked for later", async () => {
    expect(await poolOf(3_000_000).capacity()).toBe(3_000_000);
    writeFileSync(join(folder, "pool.img"), "x".repeat(2_000_000));
    expect(await poolOf(3_000_000).capacity()).toBe(2_000_000);
  });

  test.skipIf(requireTools("tests of the storage of slivers", "mkfs.btrfs"))(
    "leaves no half-made file",
    async () => {
      // As an earlier version left it.
      writeFileSync(join(folder, "pool.img.new"), "half");
      await expect(poolOf(TOO_LITTLE).prepare(signal)).rejects.toThrow(/mkfs.btrfs/);
      expect(readdirSync(folder)).toEqual(["pool"]);
    },
  );
});

describe("a pool on a file system that is not ours", () => {
  test("is not mounted: what slivers left there is not forgotten", async () => {
    const folder = mkdtempSync(join(tmpdir(), "nodeyard-pool-"));
    const reported = { clock: new VirtualClock(), onProgress: () => undefined };
    try {
      const pool = new Pool(join(folder, "absent"), undefined, 0, reported);
      await expect(pool.prepareToEnd(true, signal)).rejects.toThrow(/is not on btrfs.*mount its file system/);
      // Nothing was ever made there.
      await pool.prepareToEnd(false, signal);
      expect(readdirSync(folder)).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
