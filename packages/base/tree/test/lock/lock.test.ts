import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { LockTimeout, lock, tryLock } from "../../src/lock.ts";
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
  test("parent and contender come in one commit where the parent is missing", async () => {
    const { random, cluster, a } = setup();
    await a.create("/object");
    await tryLock(a, PARENT, { random, createParent: "parent-only" });
    expect(cluster.log.at(-1)?.ops).toHaveLength(2);
  });

  test.each([true, false])(
    "a contender does not stay in the line however often the connection breaks (once: %s)",
    async (once) => {
      let calls = 0;
      const { clock, random, cluster, a } = setup(({ kind, ops }) => {
        const made =
          kind === "write" && ops.some(({ op, path }) => op === "create" && path.includes("__lock__"));
        if (!made && calls === 0) return undefined;
        calls++;
        if (calls > 90) return undefined;
        return made ? "lose-reply" : "lose-request";
      });
      await a.create("/object");
      await a.create(PARENT);
      const { epoch } = a.session();
      const asked = tryLock(a, PARENT, { random, once });
      asked.catch(() => undefined);
      await clock.advance(600_000);
      expect(calls).toBeGreaterThan(90);
      expect(a.session().epoch).toBe(epoch);
      const lock = await asked.catch(() => undefined);
      expect(cluster.znodes.children(PARENT)).toHaveLength(lock === undefined ? 0 : 1);
    },
  );

  test("asked for while its session is being lost: nothing of it is done in the next one", async () => {
    const { clock, random, cluster, a } = setup();
    await a.create("/object");
    await a.create(PARENT);
    a.expire();
    expect(a.session()).toMatchObject({ epoch: 1, state: "suspended" });
    const asked = settle(clock, tryLock(a, PARENT, { random }));
    await expect(asked).rejects.toMatchObject({ code: "tree.session_expired", outcome: "none" });
    expect(a.session().epoch).toBe(2);
    expect(cluster.znodes.children(PARENT)).toEqual([]);
  });

  test.each([undefined, "lose-reply"] as const)(
    "asked for between two sessions (%s): it belongs to the new one, and says so",
    async (fault) => {
      let faults = 1;
      const { clock, random, cluster, a } = setup((call) =>
        call.ops.some((op) => op.op === "create" && op.sequential) && faults-- > 0 ? fault : undefined,
      );
      await a.create("/object");
      await a.create(PARENT);
      const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<typeof tryLock>>>();
      a.onSession(({ state, epoch }) => {
        if (state === "expired" && epoch === 1) resolve(tryLock(a, PARENT, { random }));
      });
      a.expire();
      const held = await settle(clock, promise);
      expect(a.session().epoch).toBe(2);
      expect(held?.epoch).toBe(2);
      expect(cluster.znodes.stat(held?.contender ?? "")?.ephemeralOwner).toBe(a.session().id);
    },
  );

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
});

test.each(["lose-request", "lose-reply"] as const)("%s of parent and contender together", async (fault) => {
  let faults = 1;
  const { clock, random, cluster, a } = setup((call) =>
    call.ops.length === 2 && faults-- > 0 ? fault : undefined,
  );
  await a.create("/object");
  const held = await settle(clock, tryLock(a, PARENT, { random, createParent: "parent-only" }));
  expect(cluster.znodes.children(PARENT)).toEqual([held?.contender.slice(PARENT.length + 1)]);
});

test("a contender whose making was not answered is found, though the next server is behind and does not show it", async () => {
  const clock = new VirtualClock();
  const random = seededRandom(7);
  let losing = false;
  const faults = ({ kind }: CallInfo): Fault => {
    if (!losing || kind !== "write") return undefined;
    losing = false;
    return "lose-reply";
  };
  const cluster = createMemoryTree({ clock, random, faults, followers: { count: 1, lagMs: () => 2_000 } });
  const tree = cluster.connect({ sessionTimeoutMs: 30_000 });
  // From the follower to the leader.
  tree.disconnect();
  await clock.advance(200);
  await tree.create("/object");
  await tree.create(PARENT);
  await clock.advance(2_000);
  losing = true;
  const held = await settle(clock, tryLock(tree, PARENT, { random }));
  expect(cluster.znodes.children(PARENT)).toEqual([held?.contender.slice(PARENT.length + 1)]);
});

test("an attempt given up while its outcome is open leaves nothing in the line", async () => {
  let faults = 1;
  const { clock, random, cluster, a } = setup((call) =>
    call.ops.some((op) => op.op === "create" && op.sequential) && faults-- > 0 ? { delayMs: 500 } : undefined,
  );
  await a.create("/object");
  await a.create(PARENT);
  const attempt = lock(a, PARENT, { clock, random, deadlineMs: 100 });
  await expect(settle(clock, attempt, 3_000)).rejects.toThrow(LockTimeout);
  expect(cluster.log.some(({ ops }) => ops[0]?.op === "create" && ops[0].sequential)).toBe(true);
  expect(cluster.znodes.children(PARENT)).toEqual([]);
});

test("whatever breaks, a fenced write is only ever that of the head of the line", async () => {
  for (let seed = 1; seed <= 15; seed++) {
    const clock = new VirtualClock();
    const random = seededRandom(seed);
    const chance = seededRandom(seed + 1_000);
    const cluster = createMemoryTree({
      clock,
      random,
      latencyMs: [0, 5],
      faults: () => {
        const draw = chance.float();
        return draw < 0.04 ? "lose-reply" : draw < 0.08 ? "lose-request" : undefined;
      },
    });
    const clients = [1, 2, 3].map(() => cluster.connect({ sessionTimeoutMs: 300 }));
    const setUp = clients[0]!.create("/object").catch(() => undefined);
    await clock.advance(1_000);
    await setUp;
    let written = 0;
    const work = async (tree: (typeof clients)[number]) => {
      for (let round = 0; round < 6; round++) {
        const held = await lock(tree, PARENT, { clock, random, createParent: "parent-only" }).catch(
          () => undefined,
        );
        const data = Buffer.from(held?.contender ?? "");
        // Broken on the way: the next round is another attempt.
        if (held === undefined) continue;
        const ops = [held.fence, { op: "set", path: "/object", data }] as const;
        const done = await tree.commit(ops).catch(() => undefined);
        if (done !== undefined) written++;
        await held.release().catch(() => undefined);
        if (chance.float() < 0.2) tree.expire();
      }
    };
    const all = Promise.all(clients.map(work));
    await clock.advance(600_000);
    await all;
    expect(written, `seed ${seed}`).toBeGreaterThan(3);
    checkLine(cluster.log);
    expect(cluster.znodes.children(PARENT), `seed ${seed}`).toEqual([]);
  }
});

/** Plays the log: at each fenced write, the contender that it names must be the first of its line. */
function checkLine(log: ReturnType<typeof createMemoryTree>["log"]): void {
  const line = new Set<string>();
  for (const { ops, results } of log) {
    ops.forEach((op, index) => {
      const result = results[index];
      if (result?.op === "create" && result.path.includes("__lock__")) line.add(result.path);
      if (op.op === "delete") line.delete(op.path);
      if (op.op === "check")
        expect(op.path).toBe([...line].sort((x, y) => (x.slice(-10) < y.slice(-10) ? -1 : 1))[0]);
    });
  }
}
