import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NoNode, type Stat, type ZooKeeperClient } from "../../src/index.ts";
import { Effects } from "../../src/recipes/tree-cache/effects.ts";
import { FetchQueue } from "../../src/recipes/tree-cache/fetch-queue.ts";
import { Fifo } from "../../src/recipes/tree-cache/fifo.ts";
import { Intake } from "../../src/recipes/tree-cache/intake.ts";
import { childOf, KnownPaths, parentOf } from "../../src/recipes/tree-cache/known-paths.ts";
import { Playback } from "../../src/recipes/tree-cache/playback.ts";

describe("fifo", () => {
  test("behaves as an array for any sequence of pushes and shifts", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 1_000 }), (pushes) => {
        const fifo = new Fifo<number>();
        const model: number[] = [];
        pushes.forEach((isPush, index) => {
          if (isPush) {
            fifo.push(index);
            model.push(index);
          } else {
            expect(fifo.shift()).toBe(model.shift());
          }
          expect(fifo.length).toBe(model.length);
          expect(fifo.peek()).toBe(model[0]);
        });
      }),
    );
  });
});

describe("playback", () => {
  test("applies in the order of the places, whatever order their effects become known in", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { minLength: 1, maxLength: 50 }), (keys) => {
        const playback = new Playback();
        const slots = keys.map(() => playback.reserve());
        const applied: number[] = [];
        const order = keys.map((key, index) => ({ key, index })).sort((a, b) => a.key - b.key);
        for (const { index } of order) playback.settle(slots[index]!, () => applied.push(index));
        expect(applied).toEqual(keys.map((_, index) => index));
        expect(playback.length).toBe(0);
      }),
    );
  });

  test("what an effect adds comes after it, not within it", () => {
    const playback = new Playback();
    const applied: string[] = [];
    playback.push(() => {
      playback.push(() => applied.push("second"));
      applied.push("first");
    });
    expect(applied).toEqual(["first", "second"]);
  });
});

describe("fetch queue", () => {
  test("never has more reads in flight than it may, and live ones overtake those of a walk", async () => {
    const queue = new FetchQueue(2);
    const open: (() => void)[] = [];
    const sent: string[] = [];
    const read = (name: string) => () => {
      sent.push(name);
      return new Promise<void>((resolve) => open.push(resolve));
    };
    for (const name of ["a", "b", "c", "d"]) queue.add("background", read(name));
    queue.add("live", read("event"));
    expect(sent).toEqual(["a", "b"]);
    expect(queue.waiting).toBe(3);
    for (let turn = 0; turn < 5; turn++) {
      open.shift()?.();
      await Promise.resolve();
      expect(open.length).toBeLessThanOrEqual(2);
    }
    expect(sent).toEqual(["a", "b", "event", "c", "d"]);
  });
});

describe("intake", () => {
  /** A client whose reads answer when told, with what is true at that moment. */
  function scene() {
    const told: string[] = [];
    const open: (() => void)[] = [];
    let mzxid = 0n;
    let exists = false;
    const stat = () => ({ mzxid, pzxid: 0n }) as Stat;
    const get = (path: string) =>
      new Promise((resolve, reject) => {
        open.push(() =>
          exists ? resolve({ data: Buffer.alloc(0), stat: stat() }) : reject(new NoNode({ path })),
        );
      });
    const known = new KnownPaths("/");
    const effects = new Effects(known, (change) => told.push(change.type));
    const fetches = new FetchQueue(1);
    const playback = new Playback();
    const client = { get } as unknown as ZooKeeperClient;
    const machinery = {
      client,
      interest: () => "data" as const,
      descend: () => true,
      fetches,
      playback,
      effects,
    } as const;
    const intake = new Intake(machinery, (error) => {
      throw error;
    });
    const happen = (type: "created" | "data" | "deleted") => {
      mzxid++;
      exists = type !== "deleted";
      intake.take({ type, path: "/a", zxid: -1n });
    };
    const answer = async () => {
      open.shift()?.();
      for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    };
    return { told, open, happen, answer, fetches };
  }

  test("changes while a read waits to be sent ride on it", async () => {
    const { told, happen, answer, fetches } = scene();
    fetches.add("live", () => Promise.resolve());
    for (const type of ["created", "data", "data", "data"] as const) happen(type);
    expect(fetches.waiting).toBe(1);
    await answer();
    await answer();
    expect(told).toEqual(["put"]);
  });

  test("a path that is made anew while the read of its former self waits to be sent is there in the end", async () => {
    const { told, open, happen, answer, fetches } = scene();
    const { promise, resolve } = Promise.withResolvers<void>();
    fetches.add("live", () => promise);
    for (const type of ["created", "deleted", "created"] as const) happen(type);
    resolve();
    for (let turn = 0; turn < 5; turn++) await answer();
    expect(open).toEqual([]);
    expect(told.at(-1)).toBe("put");
  });
});

describe("known paths", () => {
  const segment = fc.constantFrom("a", "b", "c");
  const path = fc
    .array(segment, { minLength: 0, maxLength: 4 })
    .map((parts) => ["/root", ...parts].join("/"));
  const command = fc.oneof(
    path.map((at) => ({ set: at })),
    path.map((at) => ({ remove: at })),
  );

  test("agrees with a plain list of paths, and keeps no child entries that lead nowhere", () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
        const known = new KnownPaths("/root");
        let model = new Set<string>();
        for (const step of commands) {
          if ("set" in step) {
            known.set(step.set, {});
            model.add(step.set);
          } else {
            const at = step.remove;
            const below = [...model].filter((one) => one === at || one.startsWith(`${at}/`));
            const removed = known.removeTree(at);
            expect([...removed].sort()).toEqual(below.sort());
            removed.forEach((one, index) => {
              for (const later of removed.slice(index + 1)) expect(later.startsWith(`${one}/`)).toBe(false);
            });
            model = new Set([...model].filter((one) => !below.includes(one)));
          }
        }
        expect(known.size).toBe(model.size);
        expect(new Set(reach(known, "/root"))).toEqual(model);
      }),
    );
  });

  /** Every known path that the child index leads to; fails on leaves that are not known. */
  function reach(known: KnownPaths, at: string): string[] {
    const below = [...known.children(at)].flatMap((name) => reach(known, childOf(at, name)));
    if (at !== "/root" && known.get(at) === undefined) expect(below).not.toEqual([]);
    return known.get(at) === undefined ? below : [at, ...below];
  }

  test("parents and children of the root of the tree", () => {
    expect([parentOf("/a/b"), parentOf("/a"), parentOf("/")]).toEqual(["/a", "/", ""]);
    expect([childOf("/", "a"), childOf("/a", "b")]).toEqual(["/a", "/a/b"]);
    const known = new KnownPaths("/");
    known.set("/a/b", {});
    expect([...known.children("/")]).toEqual(["a"]);
    expect(known.removeTree("/a")).toEqual(["/a/b"]);
    expect([...known.children("/")]).toEqual([]);
  });
});
