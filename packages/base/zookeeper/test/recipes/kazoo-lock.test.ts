import { afterEach, describe, expect, test } from "vitest";
import { type KazooProcess, requireZooKeeper, startKazoo } from "../../../../../testing/zookeeper/index.ts";
import { lock, stand, tryLock } from "../../src/index.ts";
import { closeAll, connect, freshPath, inspectLock, namesBelow, serverHere, until } from "./support.ts";

/** Of a session that a test ends, seconds: what stands still for less than this does not end it before. */
const SHORT_SESSION_S = 4;

/** Obeys one command per line; `acquire` runs in a thread, so that others can follow while it waits. */
const SCRIPT = `
from kazoo.exceptions import LockTimeout
c = client(args[0], timeout=float(args[1]))
locks = {}
def acquire(name, options):
    try:
        say({"acquired": locks[name].acquire(**options)})
    except LockTimeout:
        say({"acquired": "timeout"})
say("ready")
while True:
    order = hear()
    name = order.get("name", "it")
    if order["do"] == "lock":
        locks[name] = c.Lock(order["path"], order.get("identifier"))
        say("ok")
    elif order["do"] == "acquire":
        threading.Thread(target=acquire, args=(name, order["options"]), daemon=True).start()
    elif order["do"] == "release":
        locks[name].release()
        say("ok")
    elif order["do"] == "contenders":
        say(locks[name].contenders())
    elif order["do"] == "elect":
        election = c.Election(order["path"], order["identifier"])
        threading.Thread(target=election.run, args=(lambda: say("leading") or time.sleep(3600),), daemon=True).start()
`;

describe.skipIf(requireZooKeeper())("lock, shared with kazoo", () => {
  const server = serverHere();
  let running: KazooProcess[] = [];
  afterEach(async () => {
    await Promise.all(running.map((process) => process.kill()));
    running = [];
    await closeAll();
  });

  async function startPython(sessionSeconds = 40): Promise<KazooProcess> {
    const process = startKazoo(SCRIPT, [`${server.host}:${server.port}`, String(sessionSeconds)]);
    running.push(process);
    expect(await process.hear()).toBe("ready");
    return process;
  }

  test("kazoo holds: we don't get it, see who has it, wait, and win when kazoo releases", async () => {
    const [client, python] = [await connect(server), await startPython()];
    const parent = await freshPath(client);
    await python.ask({ do: "lock", path: parent, identifier: "host-4711" });
    expect(await python.ask({ do: "acquire", options: { blocking: false } })).toEqual({ acquired: true });
    expect(await tryLock(client, parent)).toBeUndefined();
    expect(await inspectLock(client, parent)).toMatchObject([{ identifier: "host-4711" }]);
    const attempt = lock(client, parent, { identifier: "ours" });
    await until("we stand in line", async () => (await namesBelow(client, parent)).length === 2);
    expect(await python.ask({ do: "contenders" })).toEqual(["host-4711", "ours"]);
    await python.ask({ do: "release" });
    const held = await attempt;
    expect((await inspectLock(client, parent)).map(({ identifier }) => identifier)).toEqual(["ours"]);
    await held.release();
  });

  test("we hold: kazoo does not get it, times out, waits, and wins when we release", async () => {
    const [client, python] = [await connect(server), await startPython()];
    const parent = await freshPath(client);
    const held = await lock(client, parent, { identifier: "ours" });
    await python.ask({ do: "lock", path: parent, identifier: "theirs" });
    expect(await python.ask({ do: "acquire", options: { blocking: false } })).toEqual({ acquired: false });
    expect(await python.ask({ do: "acquire", options: { timeout: 0.2 } })).toEqual({ acquired: "timeout" });
    python.say({ do: "acquire", options: { timeout: 60 } });
    await until("kazoo stands in line", async () => (await namesBelow(client, parent)).length === 2);
    expect((await inspectLock(client, parent)).map(({ identifier }) => identifier)).toEqual([
      "ours",
      "theirs",
    ]);
    await held.release();
    expect(await python.hear()).toEqual({ acquired: true });
    expect(await tryLock(client, parent)).toBeUndefined();
  });

  test("the lock parent that kazoo makes is ours too, and the other way round", async () => {
    const [client, python] = [await connect(server), await startPython()];
    const object = await freshPath(client);
    await python.ask({ do: "lock", name: "a", path: `${object}/a/lock` });
    expect(await python.ask({ do: "acquire", name: "a", options: { blocking: false } })).toEqual({
      acquired: true,
    });
    expect(await tryLock(client, `${object}/a/lock`)).toBeUndefined();
    const held = await tryLock(client, `${object}/lock`, { createParent: "parent-only" });
    await python.ask({ do: "lock", name: "b", path: `${object}/lock` });
    expect(await python.ask({ do: "acquire", name: "b", options: { blocking: false } })).toEqual({
      acquired: false,
    });
    await held!.release();
    expect(await python.ask({ do: "acquire", name: "b", options: { blocking: false } })).toEqual({
      acquired: true,
    });
  });

  test("when kazoo's process is killed, the end of its session gives the lock to us", async () => {
    const [client, python] = [await connect(server), await startPython(SHORT_SESSION_S)];
    const parent = await freshPath(client);
    await python.ask({ do: "lock", path: parent });
    expect(await python.ask({ do: "acquire", options: {} })).toEqual({ acquired: true });
    const attempt = lock(client, parent);
    await until("we stand in line", async () => (await namesBelow(client, parent)).length === 2);
    await python.kill();
    const held = await attempt;
    expect(await namesBelow(client, parent)).toEqual([held.path.slice(parent.length + 1)]);
  });

  test("when our client closes, its lock goes to kazoo", async () => {
    const [client, observer, python] = [await connect(server), await connect(server), await startPython()];
    const parent = await freshPath(observer);
    await lock(client, parent);
    await python.ask({ do: "lock", path: parent });
    python.say({ do: "acquire", options: { timeout: 60 } });
    await until("kazoo stands in line", async () => (await namesBelow(observer, parent)).length === 2);
    await client.close();
    expect(await python.hear()).toEqual({ acquired: true });
  });

  test("one election with kazoo's", async () => {
    const [client, python] = [await connect(server), await startPython(SHORT_SESSION_S)];
    const parent = await freshPath(client);
    expect((await inspectLock(client, parent))[0]).toBeUndefined();
    expect(await python.ask({ do: "elect", path: parent, identifier: "python-1" })).toBe("leading");
    let led = false;
    const career = stand(client, parent, { identifier: "node-1" }, async () => {
      led = true;
      expect((await inspectLock(client, parent))[0]?.identifier).toBe("node-1");
    });
    await until("we stand", async () => (await namesBelow(client, parent)).length === 2);
    expect((await inspectLock(client, parent))[0]?.identifier).toBe("python-1");
    expect(led).toBe(false);
    await python.kill();
    await career;
    expect(led).toBe(true);
    expect(await namesBelow(client, parent)).toEqual([]);
  });
});
