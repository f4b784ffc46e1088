import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { requireZooKeeper, startProxy, type TcpProxy } from "../../../../../testing/zookeeper/index.ts";
import { Aborted, LockLost, LockTimeout, lock, stand, tryLock } from "../../src/index.ts";
import {
  closeAll,
  connect,
  freshPath,
  inspectLock,
  namesBelow,
  SHORT_SESSION_MS,
  serverHere,
  until,
} from "./support.ts";

describe.skipIf(requireZooKeeper())("lock over broken connections", () => {
  const server = serverHere();
  let proxy: TcpProxy;
  beforeEach(async () => {
    proxy = await startProxy(server);
  });
  afterEach(async () => {
    proxy.refuse(false);
    await closeAll();
    await proxy.close();
  });

  const cuts = (["to-server", "to-client"] as const).flatMap((direction) =>
    [0, 1, 4, 20, 60].map((bytes) => ({ direction, bytes })),
  );

  test.each(cuts)(
    "one contender, whatever was lost: cut $bytes bytes $direction",
    async ({ direction, bytes }) => {
      const client = await connect(proxy);
      const direct = await connect(server);
      const parent = await freshPath(direct);
      for (const persistent of [false, true]) {
        const cut = proxy.cutAfter(direction, bytes);
        const held = await tryLock(client, parent, { persistent });
        await cut;
        expect(held).toBeDefined();
        expect(await namesBelow(direct, parent)).toEqual([held!.path.slice(parent.length + 1)]);
        expect(held!.lost.aborted).toBe(false);
        await held!.release();
        expect(await namesBelow(direct, parent)).toEqual([]);
      }
    },
  );

  test("a release whose reply is lost has released", async () => {
    const client = await connect(proxy);
    const parent = await freshPath(client);
    const held = await lock(client, parent);
    const cut = proxy.cutAfter("to-client", 0);
    await held.release();
    await cut;
    expect(await namesBelow(client, parent)).toEqual([]);
  });

  test.each([
    ["ephemeral", false],
    ["persistent", true],
  ])("of an abandoned attempt nothing stays, though its reply never came: %s", async (_, persistent) => {
    const [client, direct] = [await connect(proxy), await connect(server)];
    const parent = await freshPath(direct);
    const controller = new AbortController();
    proxy.stall("to-client");
    const attempt = lock(client, parent, { persistent, signal: controller.signal });
    const failure = attempt.catch((error: unknown) => error);
    await until("the server has made it", async () => (await namesBelow(direct, parent)).length === 1);
    controller.abort(new Error("enough"));
    expect(await failure).toBeInstanceOf(Aborted);
    proxy.cut();
    proxy.resume();
    await until("it is gone", async () => (await namesBelow(direct, parent)).length === 0);
    expect(client.session.state).toBe("connected");
  });

  test("a loser keeps the deadline though the server does not answer, and leaves the line later", async () => {
    const [client, direct] = [await connect(proxy), await connect(server)];
    const parent = await freshPath(direct);
    await lock(direct, parent);
    const remove = client.delete;
    client.delete = (...args) => {
      proxy.stall("to-server");
      client.delete = remove;
      return remove.apply(client, args);
    };
    await expect(tryLock(client, parent, { deadlineMs: 250 })).rejects.toThrow(LockTimeout);
    expect(await namesBelow(direct, parent)).toHaveLength(2);
    proxy.resume();
    await until("it has left", async () => (await namesBelow(direct, parent)).length === 1);
  });

  test("a waiter survives a reconnect and gets the lock after it is released", async () => {
    const [holder, waiter] = [await connect(server), await connect(proxy)];
    const parent = await freshPath(holder);
    const held = await lock(holder, parent);
    const attempt = lock(waiter, parent);
    await until("the waiter stands in line", async () => (await namesBelow(holder, parent)).length === 2);
    proxy.cut();
    await until("it is back", () => proxy.accepted === 2 && waiter.session.state === "connected");
    await held.release();
    expect((await attempt).path).toMatch(/__lock__/);
    expect(await inspectLock(holder, parent)).toHaveLength(1);
  });

  test("the end of the session frees the lock for others, and tells the one who had it", async () => {
    const [client, other] = [
      await connect(proxy, { sessionTimeoutMs: SHORT_SESSION_MS }),
      await connect(server),
    ];
    const parent = await freshPath(other);
    const held = await lock(client, parent);
    const attempt = lock(other, parent);
    await until("the other stands in line", async () => (await namesBelow(other, parent)).length === 2);
    proxy.refuse(true);
    proxy.cut();
    const second = await attempt;
    expect(held.lost.aborted).toBe(false);
    proxy.refuse(false);
    await until("the loss is known", () => held.lost.aborted);
    expect(held.lost.reason).toBeInstanceOf(LockLost);
    await held.release();
    expect((await inspectLock(other, parent)).map(({ path }) => path)).toEqual([second.path]);
  });

  test("a waiter whose session ends stands in line again with the next one", async () => {
    const [waiter, holder] = [
      await connect(proxy, { sessionTimeoutMs: SHORT_SESSION_MS }),
      await connect(server),
    ];
    const parent = await freshPath(holder);
    const held = await lock(holder, parent);
    const attempt = lock(waiter, parent);
    await until("the waiter stands in line", async () => (await namesBelow(holder, parent)).length === 2);
    proxy.refuse(true);
    proxy.cut();
    await until("its session is over", async () => (await namesBelow(holder, parent)).length === 1);
    proxy.refuse(false);
    await until("it stands in line again", async () => (await namesBelow(holder, parent)).length === 2);
    await held.release();
    const won = await attempt;
    expect((await holder.exists(won.path))?.ephemeralOwner).toBe(waiter.session.id);
  });

  test("a leader whose session ends stops leading, and stands again", async () => {
    const [client, direct] = [
      await connect(proxy, { sessionTimeoutMs: SHORT_SESSION_MS }),
      await connect(server),
    ];
    const parent = await freshPath(direct);
    const terms: AbortSignal[] = [];
    const retire = new AbortController();
    const career = stand(client, parent, { identifier: "first" }, async (term) => {
      terms.push(term);
      const over = AbortSignal.any([term, retire.signal]);
      if (!over.aborted) await new Promise((resolve) => over.addEventListener("abort", resolve));
    });
    await until("it leads", () => terms.length === 1);
    proxy.refuse(true);
    proxy.cut();
    await until("its session is over", async () => (await namesBelow(direct, parent)).length === 0);
    expect(terms[0]!.aborted).toBe(false);
    proxy.refuse(false);
    await until("it leads again", () => terms.length === 2);
    expect(terms[0]!.aborted).toBe(true);
    expect(terms[1]!.aborted).toBe(false);
    retire.abort();
    await career;
    expect(await namesBelow(direct, parent)).toEqual([]);
  });
});
