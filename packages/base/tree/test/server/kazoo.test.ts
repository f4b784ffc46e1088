import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { kazoo, startKazoo } from "../../../../../testing/zookeeper/index.ts";
import { type Bench, requireKazoo, startBench } from "./bench.ts";

/**
 * A foreign client, Debian's python3-kazoo, on our server: what Zuul and Python Nodepool speak. That each request is answered as by a real
 * ZooKeeper, `differential.test.ts` shows.
 */
describe.skipIf(requireKazoo())("kazoo", () => {
  let bench: Bench;

  beforeAll(async () => {
    bench = await startBench({ limits: { minSessionTimeoutMs: 400 } });
  });
  afterAll(() => bench.close());

  async function run(script: string): Promise<unknown[]> {
    const out = await kazoo(`zk = client(args[0])\n${script}\nzk.stop()\n`, [bench.hosts]);
    return out
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
  }

  test("locks, between two clients and past the death of the first", async () => {
    const script = `
zk = client(args[0], timeout=6)
lock = zk.Lock('/lock', args[1])
while True:
    heard = hear()
    if heard == 'try':
        say(lock.acquire(blocking=False))
    elif heard == 'wait':
        say(lock.acquire(timeout=60))
    elif heard == 'contenders':
        say(lock.contenders())
    elif heard == 'release':
        say(lock.release())
`;
    const one = startKazoo(script, [bench.hosts, "one"]);
    const two = startKazoo(script, [bench.hosts, "two"]);
    try {
      expect(await one.ask("try")).toBe(true);
      expect(await two.ask("try")).toBe(false);
      expect(await two.ask("contenders")).toEqual(["one"]);
      await one.ask("release");
      expect(await two.ask("wait")).toBe(true);
      expect(await one.ask("try")).toBe(false);
      one.say("wait");
      await two.kill();
      // Two's session times out; its contender goes; one is woken by its watch.
      expect(await one.hear()).toBe(true);
      expect(await one.ask("contenders")).toEqual(["one"]);
    } finally {
      await one.kill();
      await two.kill();
    }
  });

  test("a closed session takes its ephemerals along at once", async () => {
    const said = await run(`
other = client(args[0])
other.create('/e', b'', ephemeral=True)
stat = zk.exists('/e')
say(stat.ephemeralOwner == other.client_id[0])
try:
    zk.create('/e/child', b'')
except NoChildrenForEphemeralsError:
    say('no children')
other.stop()
say(zk.exists('/e'))
`);
    expect(said).toEqual([true, "no children", null]);
  });

  test("a session is taken up again on a new connection, watches included", async () => {
    const said = await run(`
import queue
events = queue.Queue()
zk.create('/again', b'')
zk.create('/again-e', b'', ephemeral=True)
zk.get('/again', watch=lambda event: events.put(event.type))
session = zk.client_id[0]
states = queue.Queue()
zk.add_listener(states.put)
zk._connection._socket.shutdown(2)
while states.get(timeout=60) != KazooState.CONNECTED:
    pass
say(zk.client_id[0] == session)
say(zk.exists('/again-e') is not None)
`);
    expect(said).toEqual([true, true]);
  });
});
