import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import type { SliverVolume } from "@nodeyard/sliver-protocol";
import { CacheStore } from "../../../src/isolation/storage/edge/cache-store.ts";
import { Pool } from "../../../src/isolation/storage/edge/pool.ts";

/** A sliver's life as its caches see it: `cache-once.ts POOL MARK TEXT`. It leaves a file with that text. Run again, it goes on. */

export const VOLUME: SliverVolume = {
  name: "build",
  path: "/cache/build",
  size: 16_384,
  key: ["lab", "acme", "small"],
  commit: "at-end",
};
export const ENDED = { memoryKills: 0, starts: 1 };

export async function live(folder: string, mark: string, text: string): Promise<void> {
  const { signal } = new AbortController();
  const told = { clock: systemClock, onProgress: (line: string) => console.error(line) };
  const store = new CacheStore(new Pool(folder, `${folder}.img`, 0, told), 0.5, told);
  await store.prepare(new Set([mark]), signal);
  const [made] = await store.copy(mark, [VOLUME], 1000, signal);
  // Not by what a killed process stops at.
  writeFileSync(join(store.path(mark, VOLUME), "version"), text);
  writeFileSync(join(folder, "..", "made.json"), JSON.stringify(made));
  await store.leave(mark, "one", [made!], ENDED, signal);
}

const [, script, folder, mark, text] = process.argv;
if (script === import.meta.filename && folder !== undefined && existsSync(folder))
  await live(folder, mark!, text!);
