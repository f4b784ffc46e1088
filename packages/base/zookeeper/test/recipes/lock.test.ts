import { afterEach, describe, expect, test } from "vitest";
import { requireZooKeeper } from "../../../../../testing/zookeeper/index.ts";
import { Aborted, LockTimeout, lock, MultiFailed, NoNode, tryLock } from "../../src/index.ts";
import { closeAll, connect, freshPath, inspectLock, namesBelow, serverHere, until } from "./support.ts";

describe.skipIf(requireZooKeeper())("lock", () => {
  const server = serverHere();
  afterEach(closeAll);

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
    let waking = true;
    const wake = async () => {
      while (waking) await client.set(holder.path, Buffer.from("wake up"));
    };
    const woken = wake();
    const error = await lock(client, parent, { deadlineMs: 300 }).catch((failure: unknown) => failure);
    waking = false;
    await woken;
    expect(error).toBeInstanceOf(LockTimeout);
    expect(error).toMatchObject({ code: "zookeeper.lock_timeout", path: parent });
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
    expect(line[0]!.path).toBe(held!.path);
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
      const line = await inspectLock(client, parent);
      return line.length === 2 ? line : undefined;
    });
    await client.delete(waiting!.path);
    await holder.release();
    const held = await attempt;
    expect(held.path).not.toBe(waiting!.path);
    expect((await inspectLock(client, parent)).map(({ path }) => path)).toEqual([held.path]);
  });

  test("a lock that was released is not lost when the client closes", async () => {
    const client = await connect(server);
    const parent = await freshPath(client);
    const released = await lock(client, parent);
    await released.release();
    const kept = await lock(client, parent);
    await client.close();
    expect(released.lost.aborted).toBe(false);
    expect(kept.lost.aborted).toBe(true);
  });
});
