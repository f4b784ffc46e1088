import { sleep, VirtualClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { readRefusal } from "../../src/isolation/storage/edge/btrfs-quota.ts";
import { QuotaGroups, type QuotaTools } from "../../src/isolation/storage/quota-groups.ts";

const COMMIT_INTERVAL = 30_000;

/** A btrfs as Linux before 6.11 (`keeps`) or since treats quota groups. It outlives who works on it. */
class FileSystem implements QuotaTools {
  readonly clock = new VirtualClock();
  readonly live = new Set<number>();
  readonly groups = new Set<number>();
  readonly notes = new Set<number>();
  readonly asked: string[] = [];
  /** Never taken apart. */
  readonly whole = new Set<number>();
  /** When it was removed, and how many commits there had been. */
  readonly #gone = new Map<number, { readonly at: number; readonly commits: number }>();
  readonly #written = new Set<number>();
  readonly #keeps: boolean;
  /** What destroying a group fails with, for ever. */
  readonly broken = new Map<number, Error>();
  /** It counts something, for ever. */
  readonly counts = new Set<number>();
  #commits = 0;

  constructor(keeps: boolean) {
    this.#keeps = keeps;
  }

  make(id: number): void {
    this.live.add(id);
    this.groups.add(id);
  }

  remove(id: number): void {
    this.live.delete(id);
    this.#gone.set(id, { at: this.clock.monotonic(), commits: this.#commits });
  }

  owed = async () => [...this.notes].filter((id) => !this.live.has(id));
  owe = async (id: number) => void this.notes.add(id);
  settled = async (id: number) => void this.notes.delete(id);

  async dropped(ids: readonly number[], signal: AbortSignal): Promise<void> {
    this.asked.push(`dropped ${ids.join(" ")}`);
    for (const id of ids) {
      while (this.whole.has(id) || !this.#isDropped(id)) await sleep(this.clock, 1000, signal);
      if (!this.#keeps) this.groups.delete(id);
    }
  }

  async commit(): Promise<void> {
    this.asked.push("commit");
    this.#commits++;
    for (const id of this.#gone.keys()) if (this.#isDropped(id)) this.#written.add(id);
  }

  async destroy(id: number): Promise<"gone" | "busy"> {
    const why = this.broken.get(id);
    if (why !== undefined) throw why;
    if (this.counts.has(id)) return "busy";
    if (!this.groups.has(id)) return "gone";
    if (!this.#written.has(id)) return "busy";
    this.groups.delete(id);
    return "gone";
  }

  #isDropped(id: number): boolean {
    const gone = this.#gone.get(id);
    if (gone === undefined) return !this.live.has(id);
    return this.#commits > gone.commits || this.clock.monotonic() >= gone.at + COMMIT_INTERVAL;
  }
}

const { signal } = new AbortController();

describe.each([
  ["before 6.11, which keeps them", true],
  ["since 6.11, which removes them", false],
])("quota groups of removed subvolumes, on a kernel %s", (_, keeps) => {
  const rig = () => {
    const fs = new FileSystem(keeps);
    const said: string[] = [];
    const process = () =>
      new QuotaGroups(fs, { clock: fs.clock, onProgress: (line) => void said.push(line) });
    const remove = async (groups: QuotaGroups, ...ids: number[]) => {
      for (const id of ids) {
        fs.make(id);
        await groups.owe(id);
        fs.remove(id);
        groups.begin(id);
      }
    };
    return { fs, said, process, remove };
  };

  test("go in the file system's own time, all that came meanwhile together", async () => {
    const { fs, said, process, remove } = rig();
    const groups = process();
    await remove(groups, 300, 301, 302);
    await fs.clock.advance(10_000);
    await remove(groups, 303, 304);
    expect(fs.groups.size).toBe(5);
    await fs.clock.advance(3 * COMMIT_INTERVAL);
    expect([[...fs.groups], [...fs.notes], said, groups.stuck.size]).toEqual([[], [], [], 0]);
    expect(fs.asked.filter((one) => one.startsWith("dropped")).length).toBeLessThanOrEqual(3);
    // Nothing is written out of its time where the kernel does the work.
    if (!keeps) expect(fs.asked).not.toContain("commit");
    expect(fs.clock.pending).toBe(0);
  });

  test("are gone at once for who cannot wait", async () => {
    const { fs, process, remove } = rig();
    const groups = process();
    await remove(groups, 300, 301);
    let done = false;
    const hurried = groups.hurry(signal).then(() => {
      done = true;
    });
    await fs.clock.advance(3_000);
    expect(done).toBe(true);
    await hurried;
    expect([[...fs.groups], [...fs.notes]]).toEqual([[], []]);
  });

  test("are gone too for who hurries them when the last of them is just going", async () => {
    const { fs, process, remove } = rig();
    const groups = process();
    await remove(groups, 300);
    const commit = fs.commit.bind(fs);
    // The disk is busy: meanwhile the rounds in the background end.
    fs.commit = async () => {
      fs.commit = commit;
      await sleep(fs.clock, 3 * COMMIT_INTERVAL);
    };
    const hurried = groups.hurry(signal);
    await fs.clock.advance(3 * COMMIT_INTERVAL);
    await hurried;
    expect([[...fs.groups], [...fs.notes]]).toEqual([[], []]);
  });

  test("are not forgotten when who removed their subvolumes is gone, and those that still have one are left alone", async () => {
    const { fs, said, process, remove } = rig();
    const first = process();
    await remove(first, 300);
    fs.make(301);
    await first.owe(301);
    await first.stop();
    expect([...fs.notes]).toEqual([300, 301]);
    const next = process();
    await next.resume(signal);
    await fs.clock.advance(2 * COMMIT_INTERVAL);
    expect([[...fs.groups], [...fs.notes], said]).toEqual([[301], [301], []]);
  });

  test("one that cannot be removed is counted and reported, does not stop the others, and is tried again with the next", async () => {
    const { fs, said, process, remove } = rig();
    const groups = process();
    fs.counts.add(300);
    fs.broken.set(301, new Error("Input/output error"));
    await remove(groups, 300, 301, 302);
    await fs.clock.advance(3 * COMMIT_INTERVAL);
    expect([...groups.stuck]).toEqual(
      expect.arrayContaining([
        [301, "Input/output error"],
        [300, "busy, though its subvolume is gone"],
      ]),
    );
    expect([...fs.notes]).toEqual([300, 301]);
    expect(said.at(-1)).toMatch(/^2 quota groups of removed subvolumes cannot be removed \(0\/30[01]: /);
    // Nobody asks again until there is a reason to.
    const asked = fs.asked.length;
    await fs.clock.advance(3_600_000);
    expect(fs.asked.length).toBe(asked);

    fs.counts.clear();
    fs.broken.clear();
    await remove(groups, 303);
    await fs.clock.advance(3 * COMMIT_INTERVAL);
    expect([[...fs.groups], [...fs.notes], groups.stuck.size]).toEqual([[], [], 0]);
    expect(said.at(-1)).toBe("the remaining quota groups are removed");
  });

  test("a subvolume that is never taken apart ends a round at its limit, and a stop at once", async () => {
    const { fs, process, remove } = rig();
    const groups = process();
    fs.whole.add(300);
    await remove(groups, 300);
    await fs.clock.advance(299_000);
    expect(groups.stuck.size).toBe(0);
    await fs.clock.advance(2_000);
    expect([...groups.stuck]).toEqual([[300, "not within 300 s"]]);
    groups.begin(301);
    await groups.stop();
    expect([...fs.notes]).toEqual([300]);
    expect(fs.clock.pending).toBe(0);
  });
});

describe("what btrfs says of a group that it does not remove", () => {
  test("is distinguished", () => {
    const said = (reason: string) => `btrfs qgroup destroy: ERROR: unable to destroy quota group: ${reason}`;
    expect(readRefusal(said("No such file or directory"))).toBe("gone");
    expect(readRefusal(said("Device or resource busy"))).toBe("busy");
    for (const other of [
      said("Operation not permitted"),
      said("Transport endpoint is not connected"),
      "btrfs qgroup destroy: ERROR: cannot access '/pool': No such file or directory",
      "btrfs qgroup destroy: it ended with 1",
    ])
      expect(readRefusal(other), other).toBeUndefined();
  });
});
