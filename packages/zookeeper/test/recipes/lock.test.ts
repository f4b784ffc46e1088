import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../testing/zookeeper/index.ts";
import {
  Aborted,
  type Clock,
  contenderPrefix,
  inspectLock,
  LockTimeout,
  listContenders,
  lock,
  MultiFailed,
  NoNode,
  tryLock,
} from "../../src/index.ts";
import { closeAll, connect, freshPath, namesBelow, until } from "./support.ts";

describe.skipIf(requireZooKeeper())("lock", () => {
  let server: ZooKeeperServer;
  beforeAll(async () => {
    server = await startZooKeeper();
  });
  afterEach(closeAll);
  afterAll(() => server.stop());

  test("the winner's contender has the name that kazoo expects, and the loser leaves nothing behind", async () => {
    const [a, b] = [await connect(server), await connect(server)];
    const parent = await freshPath(a);
    const held = await tryLock(a, parent);
    expect(held?.path).toMatch(new RegExp(`^${parent}/[0-9a-f]{32}__lock__[0-9]{10}$`));
    expect(await tryLock(b, parent)).toBeUndefined();
    expect(await namesBelow(a, parent)).toEqual([held!.path.slice(parent.length + 1)]);
    await held!.release();
    await held!.release();
    expect(await namesBelow(a, parent)).toEqual([]);
    expect(held!.lost.aborted).toBe(false);
    const next = await tryLock(b, parent);
    expect(next).toBeDefined();
  });

  test("makes no ghosts: the lock parent only when it may, the path above it never", async () => {
    const client = await connect(server);
    const object = await freshPath(client);
    await expect(tryLock(client, `${object}/lock`)).rejects.toThrow(NoNode);
    expect(await namesBelow(client, object)).toEqual([]);

    const gone = `${object}-gone`;
    await expect(tryLock(client, `${gone}/lock`, { createParent: "parent-only" })).rejects.toThrow(NoNode);
    expect(await listContenders(client, `${gone}/lock`)).toEqual([]);
    expect(await inspectLock(client, `${gone}/lock`)).toEqual([]);
    expect(await client.exists(gone)).toBeUndefined();

    const held = await tryLock(client, `${object}/lock`, { createParent: "parent-only" });
    expect(held).toBeDefined();
    expect((await client.get(`${object}/lock`)).data.length).toBe(0);
  });

  test("waiters win in the order in which they came, and one at a time", async () => {
    const client = await connect(server);
    const parent = await freshPath(client);
    const first = await lock(client, parent);
    const order: number[] = [];
    let inside = 0;
    const waiters: Promise<void>[] = [];
    for (let i = 0; i < 8; i++) {
      waiters.push(
        lock(client, parent).then(async (held) => {
          inside++;
          expect(inside).toBe(1);
          order.push(i);
          await client.exists(parent);
          inside--;
          await held.release();
        }),
      );
      await until(
        "the waiter stands in line",
        async () => (await namesBelow(client, parent)).length === i + 2,
      );
    }
    await first.release();
    await Promise.all(waiters);
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test("the deadline counts from the call, however often the waiter wakes up in between", async () => {
    const client = await connect(server);
    const parent = await freshPath(client);
    const holder = await lock(client, parent);
    const clock = new ManualClock();
    const attempt = lock(client, parent, { deadlineMs: 1_000, clock });
    const failure = attempt.catch((error: unknown) => error);
    await until("the waiter waits", async () => clock.timers.size > 0);
    for (let wake = 0; wake < 3; wake++) {
      clock.time += 300;
      const before = clock.made;
      await client.set(holder.path, Buffer.from([wake]));
      await until("the waiter waits anew", () => clock.made > before && clock.timers.size > 0);
    }
    expect([...clock.timers].map(({ ms }) => Math.round(ms))).toEqual([100]);
    clock.time += 100;
    for (const timer of clock.timers) timer.fn();
    expect(await failure).toBeInstanceOf(LockTimeout);
    expect(await failure).toMatchObject({ code: "zookeeper.lock_timeout", path: parent });
    await until("its contender is gone", async () => (await namesBelow(client, parent)).length === 1);
  });

  test("a signal ends the wait and takes the contender out of the line", async () => {
    const client = await connect(server);
    const parent = await freshPath(client);
    const holder = await lock(client, parent);
    const controller = new AbortController();
    const attempt = lock(client, parent, { signal: controller.signal, deadlineMs: Number.POSITIVE_INFINITY });
    await until("the waiter stands in line", async () => (await namesBelow(client, parent)).length === 2);
    const why = new Error("enough");
    controller.abort(why);
    const error = await attempt.catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(Aborted);
    expect((error as Error).cause).toBe(why);
    await until("its contender is gone", async () => (await namesBelow(client, parent)).length === 1);
    await holder.release();
    await expect(lock(client, parent, { signal: AbortSignal.abort(why) })).rejects.toThrow(Aborted);
    expect(await namesBelow(client, parent)).toEqual([]);
  });

  test("children that are no contenders do not stand in line", async () => {
    const client = await connect(server);
    const parent = await freshPath(client);
    await client.create(`${parent}/lock-`, undefined, { sequential: true });
    await client.create(`${parent}/x__rlock__`, undefined, { sequential: true });
    await client.create(`${parent}/__lock__`, undefined, {});
    expect(await tryLock(client, parent)).toBeDefined();
    const foreign = await freshPath(client);
    await client.create(`${foreign}/anything__lock__`, undefined, { sequential: true });
    expect(await tryLock(client, foreign)).toBeUndefined();
  });

  test("a persistent contender outlives its session and says who made it", async () => {
    const [a, b] = [await connect(server), await connect(server)];
    const parent = await freshPath(b);
    const held = await tryLock(a, parent, { persistent: true, identifier: "NodePool:metastatic:p\u00e9" });
    await a.close();
    expect(held!.lost.aborted).toBe(false);
    expect(await tryLock(b, parent)).toBeUndefined();
    const line = await inspectLock(b, parent);
    expect(line).toMatchObject([{ identifier: "NodePool:metastatic:p\u00e9", owner: 0n }]);
    expect(`${parent}/${line[0]!.name}`).toBe(held!.path);
  });

  test("a long line is inspected whole and in order, with who left meanwhile left out", async () => {
    const client = await connect(server);
    const parent = await freshPath(client);
    const made = Array.from({ length: 250 }, (_, i) =>
      client.create(`${parent}/x__lock__`, Buffer.from(`${i}`), { sequential: true, ephemeral: i % 2 === 0 }),
    );
    await Promise.all(made);
    const line = await inspectLock(client, parent);
    expect(line.map(({ identifier }) => identifier)).toEqual(Array.from({ length: 250 }, (_, i) => `${i}`));
    expect(line.map(({ owner }) => owner)).toEqual(
      line.map((_, i) => (i % 2 === 0 ? client.session.id : 0n)),
    );
    const other = await connect(server);
    const { children } = client;
    client.children = async (...args) => {
      const listing = await children.apply(client, args);
      await other.delete(`${parent}/${line[7]!.name}`);
      return listing;
    };
    const shorter = await inspectLock(client, parent);
    expect(shorter.map(({ name }) => name)).toEqual(line.map(({ name }) => name).filter((_, i) => i !== 7));
  });

  test("a check of the contender fences a multi", async () => {
    const client = await connect(server);
    const parent = await freshPath(client);
    const held = await lock(client, parent);
    const fenced = [
      { op: "check", path: held.path },
      { op: "set", path: parent, data: Buffer.from("mine") },
    ] as const;
    await client.multi(fenced);
    await held.release();
    await expect(client.multi(fenced)).rejects.toThrow(MultiFailed);
  });

  test("a contender deleted by others while it waits stands in line again", async () => {
    const client = await connect(server);
    const parent = await freshPath(client);
    const holder = await lock(client, parent);
    const attempt = lock(client, parent);
    const [, waiting] = await until("the waiter stands in line", async () => {
      const line = await listContenders(client, parent);
      return line.length === 2 ? line : undefined;
    });
    await client.delete(`${parent}/${waiting!.name}`);
    await holder.release();
    const held = await attempt;
    expect(held.path).not.toBe(`${parent}/${waiting!.name}`);
    expect((await listContenders(client, parent)).map(({ name }) => `${parent}/${name}`)).toEqual([
      held.path,
    ]);
  });

  test("a lock that was released is not lost when the client closes", async () => {
    const client = await connect(server);
    const parent = await freshPath(client);
    const uuid = "0123456789abcdef0123456789abcdef";
    const released = await lock(client, parent, { random: { float: () => 0, uuid: () => uuid } });
    expect(released.path).toContain(`/${contenderPrefix(uuid)}`);
    await released.release();
    const kept = await lock(client, parent);
    await client.close();
    expect(released.lost.aborted).toBe(false);
    expect(kept.lost.aborted).toBe(true);
  });
});

class ManualClock implements Clock {
  time = 0;
  made = 0;
  readonly timers = new Set<{ readonly ms: number; readonly fn: () => void }>();

  now(): number {
    return this.time;
  }
  monotonic(): number {
    return this.time;
  }
  setTimer(ms: number, fn: () => void) {
    const timer = { ms, fn };
    this.made++;
    this.timers.add(timer);
    return { cancel: () => void this.timers.delete(timer) };
  }
}
