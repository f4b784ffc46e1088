import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CacheStore } from "../../src/isolation/storage/edge/cache-store.ts";
import { ENDED, VOLUME } from "./machine/cache-once.ts";
import { ImageLab } from "./machine/image-lab.ts";
import { whyNot } from "./machine/rig.ts";

const { signal } = new AbortController();

describe.skipIf(whyNot() !== undefined)("caches in a pool", () => {
  let lab: ImageLab;
  beforeEach(async () => {
    lab = new ImageLab();
    await lab.prepare();
  });
  afterEach(() => lab.stop());

  const store = async (marks: readonly string[] = [], part = 0.5) => {
    const told = { clock: systemClock, onProgress: (line: string) => void lab.said.push(line) };
    const made = new CacheStore(lab.pool, part, told);
    await made.prepare(new Set(marks), signal);
    return made;
  };
  const inPool = (folder: string) => readdirSync(join(lab.folder, "pool", folder)).sort();

  test("a process that dies at any of its steps leaves the cache of before or the new one, whole, and nothing else", async () => {
    const reported = join(lab.folder, "told");
    const machine = join(import.meta.dirname, "machine");
    const pool = join(lab.folder, "pool");
    const run = (at: string, mark: string, text: string): string | undefined => {
      rmSync(reported, { force: true });
      const words = ["--disable-warning=ExperimentalWarning", "--import", join(machine, "die-at.ts")];
      spawnSync(process.execPath, [...words, join(machine, "cache-once.ts"), pool, mark, text], {
        env: { ...process.env, NODEYARD_DIE_AT: at, NODEYARD_DIE_TELL: reported },
        stdio: ["ignore", "inherit", "inherit"],
      });
      return existsSync(reported) ? readFileSync(reported, "utf8") : undefined;
    };
    const seen = new Set<string>();
    let before = "0";
    let life = 1;
    expect(run("1000000", "ny-1.1", "0")).toBeUndefined();
    for (let step = 1, died = true; died; step++)
      for (const when of [`${step}`, `${step}+`]) {
        const mark = `ny-1.${++life}`;
        rmSync(join(lab.folder, "made.json"), { force: true });
        const what = run(when, mark, when);
        died = what !== undefined;
        // As a manager's next start, which finds the mark: it ends the sliver, whose copies it may leave.
        const next = await store([mark]);
        const made = existsSync(join(lab.folder, "made.json"))
          ? JSON.parse(readFileSync(join(lab.folder, "made.json"), "utf8"))
          : undefined;
        const there = next.list().length;
        expect(there, `${when}: ${what}`).toBe(1);
        if (made !== undefined && existsSync(next.path(mark, VOLUME)))
          await next.leave(mark, "one", [made], ENDED, signal);
        const last = await store();
        const [version] = inPool("caches").filter((name) => !name.endsWith(".json"));
        const now = readFileSync(join(pool, "caches", version!, "version"), "utf8");
        expect([before, when], `${when}: ${what}`).toContain(now);
        expect(inPool("caches").length, `${when}: ${what}`).toBe(2);
        expect(inPool("copies"), `${when}: ${what}`).toEqual([]);
        expect(last.list()).toHaveLength(1);
        seen.add(now === before ? "earlier" : "new");
        before = now;
      }
    expect([...seen].sort()).toEqual(["earlier", "new"]);
  });

  test("a cache that is damaged, deleted or beyond its room costs no sliver its start", async () => {
    const first = await store(["ny-1.1"]);
    const [made] = await first.copy("ny-1.1", [VOLUME], 1000, signal);
    await first.leave("ny-1.1", "one", [made!], ENDED, signal);
    const [{ id } = { id: "" }] = first.list();
    // Without its content, as after an accident.
    spawnSync("btrfs", ["subvolume", "delete", join(lab.folder, "pool", "caches", `${id}.ny-1.1`)]);
    const [second] = await first.copy("ny-2.2", [VOLUME], 1000, signal);
    expect(second?.why).toMatch(/btrfs subvolume snapshot/);
    expect(readdirSync(first.path("ny-2.2", VOLUME))).toEqual([]);
    expect((await store()).list()).toEqual([]);
    // No room at all: nothing is kept, and the sliver's end goes on.
    const none = await store(["ny-3.3"], 0);
    const [third] = await none.copy("ny-3.3", [VOLUME], 1000, signal);
    await none.leave("ny-3.3", "three", [third!], ENDED, signal);
    expect([none.list(), inPool("caches"), inPool("copies")]).toEqual([[], [], []]);
    expect(lab.said.join()).toMatch(/and all caches may have 0/);
  });
});
