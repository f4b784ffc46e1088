import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { attachEmbeddedTree, type Tree } from "@nodeyard/tree";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fakeConfig, Running } from "../../../../nodeyard/cli/test/nodeyard.ts";
import { noSmallDisk, SmallDisk } from "./small-disk.ts";

const attach = (folder: string) =>
  attachEmbeddedTree({ folder, clock: systemClock, random: systemRandom, sessionTimeoutMs: 60_000 });

/** Writes as fast as it is answered, several at a time; knows what was acknowledged. */
class Writer {
  readonly acknowledged = new Set<string>();
  refused: Error | undefined;
  readonly #tree: Tree;
  readonly #lanes: Promise<void>[];
  readonly #more = Promise.withResolvers<void>();
  #next: number;
  #wanted = Number.POSITIVE_INFINITY;

  constructor(tree: Tree, first: number) {
    this.#tree = tree;
    this.#next = first;
    this.#lanes = Array.from({ length: 8 }, () => this.#write());
  }

  /** Resolves when `count` more were acknowledged. */
  some(count: number): Promise<void> {
    this.#wanted = this.acknowledged.size + count;
    return this.#more.promise;
  }

  /** Resolves when nothing is answered any more. */
  async over(): Promise<number> {
    await Promise.all(this.#lanes);
    return this.#next;
  }

  async #write(): Promise<void> {
    for (;;) {
      const name = String(this.#next++);
      try {
        await this.#tree.create(`/rule-10/${name}`, Buffer.alloc(512), { deadlineMs: 5_000 });
      } catch (error) {
        this.refused ??= error as Error;
        return;
      }
      this.acknowledged.add(name);
      if (this.acknowledged.size >= this.#wanted) this.#more.resolve();
    }
  }
}

describe.skipIf(noSmallDisk() !== undefined)("rule 10: a disk that takes no more", () => {
  let folder: string;
  let disk: SmallDisk;
  const running: Running[] = [];
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-disk-"));
    mkdirSync(join(folder, "disk"));
    writeFileSync(join(folder, "nodepool.yaml"), fakeConfig());
    disk = await SmallDisk.mount(join(folder, "disk"), 8);
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((each) => each.kill("SIGKILL")));
    await disk.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const start = () => {
    const words = ["--state", join(folder, "disk/state"), "-c", join(folder, "nodepool.yaml"), "up"];
    const up = new Running(words, {}, disk.through);
    running.push(up);
    return up;
  };
  const errors = (text: string) =>
    text
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as { level: string; code?: string; message: string })
      .filter(({ level, code }) => level === "error" && code !== undefined);

  test("full disk: no further write is acknowledged, one error says so, the process ends, and acknowledged writes are there", async () => {
    const up = start();
    await up.printed("Nodeyard is up");
    const tree = await attach(join(disk.seen, "state"));
    await tree.create("/rule-10");
    const writer = new Writer(tree, 0);
    await writer.some(50);
    disk.fill();
    await writer.over();
    const { code, err } = await up.ended;
    expect(code).toBe(1);
    expect(errors(err)).toMatchObject([
      {
        code: "process.store_lost",
        message: expect.stringMatching(/disk\/state cannot be written \(.*full\): .*free disk space/),
      },
    ]);
    await expect(tree.create("/rule-10/late", undefined, { deadlineMs: 1_000 })).rejects.toThrow();
    await tree.close();

    disk.empty();
    await start().printed("Nodeyard is up");
    const after = await attach(join(disk.seen, "state"));
    const found = new Set(await after.children("/rule-10"));
    expect([...writer.acknowledged].filter((name) => !found.has(name))).toEqual([]);
    expect(found.has("late")).toBe(false);
    await after.close();
  });

  test("full, or not to be written, at the start: it says so in one line, and begins nothing", async () => {
    disk.fill();
    const full = await start().ended;
    expect([full.code, full.err.trim().split("\n").length]).toEqual([1, 1]);
    expect(full.err).toMatch(/disk\/state.*(full|no space)/i);
    disk.empty();
    disk.freeze(join(folder, "disk"));
    const frozen = await start().ended;
    expect([frozen.code, frozen.err.trim().split("\n").length]).toEqual([1, 1]);
    expect(frozen.err).toMatch(/disk\/state.*read-only/i);
  });
});
