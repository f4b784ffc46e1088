import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { NoNode } from "../../src/errors.ts";
import { LockTimeout, lock, tryLock } from "../../src/lock/index.ts";
import { type CallInfo, createMemoryTree, type Fault } from "../../src/memory/index.ts";

const PARENT = "/object/lock";

function setup(faults?: (call: CallInfo) => Fault) {
  const clock = new VirtualClock();
  const random = seededRandom(7);
  const cluster = createMemoryTree({ clock, random, ...(faults ? { faults } : {}) });
  return { clock, random, cluster, a: cluster.connect(), b: cluster.connect() };
}

async function settle<T>(clock: VirtualClock, promise: Promise<T>, ms = 5_000): Promise<T> {
  promise.catch(() => undefined);
  await clock.advance(ms);
  return promise;
}

describe("tryLock", () => {
  test("the second gets nothing, and leaves nothing in the line", async () => {
    const { random, cluster, a, b } = setup();
    await a.create("/object");
    const first = await tryLock(a, PARENT, { random, createParent: "parent-only" });
    expect(await tryLock(b, PARENT, { random })).toBeUndefined();
    expect(cluster.znodes.children(PARENT)).toHaveLength(1);
    await first?.release();
    expect(await tryLock(b, PARENT, { random })).toBeDefined();
  });

  test("parent and contender come in one commit where the parent is missing", async () => {
    const { random, cluster, a } = setup();
    await a.create("/object");
    await tryLock(a, PARENT, { random, createParent: "parent-only" });
    expect(cluster.log.at(-1)?.ops).toHaveLength(2);
  });

  test("the path of an object that is gone is not brought back", async () => {
    const { random, cluster, a } = setup();
    await expect(tryLock(a, PARENT, { random, createParent: "parent-only" })).rejects.toThrow(NoNode);
    await expect(tryLock(a, PARENT, { random })).rejects.toThrow(NoNode);
    expect(cluster.znodes.stat("/object")).toBeUndefined();
  });

  test.each(["lose-request", "lose-reply"] as const)(
    "%s of the contender: one contender, ours",
    async (fault) => {
      let faults = 1;
      const { clock, random, cluster, a } = setup((call) =>
        call.ops.some((op) => op.op === "create" && op.sequential) && faults-- > 0 ? fault : undefined,
      );
      await a.create("/object");
      await a.create(PARENT);
      const held = await settle(clock, tryLock(a, PARENT, { random, identifier: "me" }));
      expect(cluster.znodes.children(PARENT)).toEqual([held?.contender.slice(PARENT.length + 1)]);
      expect(Buffer.from(cluster.znodes.data(held?.contender ?? "") ?? []).toString()).toBe("me");
    },
  );

  test("a lost lock stops the commit that it fences", async () => {
    const { clock, random, cluster, a } = setup();
    await a.create("/object");
    const held = await tryLock(a, PARENT, { random, createParent: "parent-only" });
    a.expire();
    await clock.advance(1_000);
    const write = a.commit([held!.fence, { op: "set", path: "/object", data: Buffer.from("late") }]);
    await expect(write).rejects.toMatchObject({ code: "tree.commit_failed", index: 0 });
    expect(cluster.znodes.stat("/object")?.version).toBe(0);
  });
});

describe("lock", () => {
  test("waits for its turn, in the order of the line", async () => {
    const { clock, random, a, b, cluster } = setup();
    await a.create("/object");
    const c = cluster.connect();
    const first = await tryLock(a, PARENT, { random, createParent: "parent-only" });
    const order: string[] = [];
    const second = lock(b, PARENT, { clock, random }).then((held) => {
      order.push("b");
      return held;
    });
    await clock.advance(10);
    const third = lock(c, PARENT, { clock, random }).then((held) => {
      order.push("c");
      return held;
    });
    await clock.advance(10);
    expect(order).toEqual([]);
    await first?.release();
    await (await second).release();
    await third;
    expect(order).toEqual(["b", "c"]);
  });

  test("gives up at its deadline and leaves the line", async () => {
    const { clock, random, a, b, cluster } = setup();
    await a.create("/object");
    await tryLock(a, PARENT, { random, createParent: "parent-only" });
    const waiting = lock(b, PARENT, { clock, random, deadlineMs: 1_000 });
    await expect(settle(clock, waiting)).rejects.toThrow(LockTimeout);
    expect(cluster.znodes.children(PARENT)).toHaveLength(1);
  });

  test("stands in line again after its session ended", async () => {
    const { clock, random, a, b } = setup();
    await a.create("/object");
    const first = await tryLock(a, PARENT, { random, createParent: "parent-only" });
    const waiting = lock(b, PARENT, { clock, random });
    await clock.advance(10);
    b.expire();
    await clock.advance(1_000);
    await first?.release();
    const held = await settle(clock, waiting);
    expect(held.epoch).toBe(b.session().epoch);
    expect((await b.stat(held.contender))?.ephemeralOwner).toBe(b.session().id);
  });

  test("holds while a connection comes back with the same session", async () => {
    const { clock, random, a, b } = setup();
    await a.create("/object");
    const first = await tryLock(a, PARENT, { random, createParent: "parent-only" });
    const waiting = lock(b, PARENT, { clock, random });
    await clock.advance(10);
    b.disconnect();
    await first?.release();
    const held = await settle(clock, waiting);
    expect(held.epoch).toBe(1);
  });
});
