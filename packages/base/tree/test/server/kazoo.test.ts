import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { kazoo, startKazoo } from "../../../../../testing/zookeeper/index.ts";
import { type Bench, requireKazoo, startBench } from "./bench.ts";

/** A foreign client, Debian's python3-kazoo, on our server: what Zuul and Python Nodepool speak. */
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

  test("operations and their errors", async () => {
    const said = await run(`
zk.create('/ops', b'one')
data, stat = zk.get('/ops')
say([data.decode(), stat.version, stat.cversion, stat.dataLength, stat.numChildren, stat.ephemeralOwner])
stat = zk.set('/ops', b'two', version=0)
say(stat.version)
for act in (lambda: zk.set('/ops', b'x', version=0), lambda: zk.get('/none'), lambda: zk.create('/ops', b''),
            lambda: zk.create('/none/a', b''), lambda: zk.delete('/none')):
    try:
        act()
        say('no error')
    except Exception as error:
        say(type(error).__name__)
zk.ensure_path('/ops/a/b/c')
try:
    zk.delete('/ops/a')
except NotEmptyError:
    say('not empty')
say(sorted(zk.get_children('/ops')))
children, stat = zk.get_children('/ops', include_data=True)
say([children, stat.numChildren, stat.cversion])
zk.delete('/ops', recursive=True)
say(zk.exists('/ops'))
path, stat = zk.create('/two', b'xy', include_data=True)
say([path, stat.dataLength, stat.czxid == stat.mzxid])
acl, stat = zk.get_acls('/two')
say([acl[0].perms, acl[0].id.scheme, acl[0].id.id])
zk.sync('/two')
`);
    expect(said).toEqual([
      ["one", 0, 0, 3, 0, 0],
      1,
      "BadVersionError",
      "NoNodeError",
      "NodeExistsError",
      "NoNodeError",
      "NoNodeError",
      "not empty",
      ["a"],
      [["a"], 1, 1],
      null,
      ["/two", 2, true],
      [31, "world", "anyone"],
    ]);
  });

  test("sequence numbers count every child ever made", async () => {
    const said = await run(`
zk.ensure_path('/seq')
say(zk.create('/seq/a-', b'', sequence=True))
zk.create('/seq/plain', b'')
say(zk.create('/seq/', b'', sequence=True))
zk.delete('/seq/plain')
say(zk.create('/seq/b-', b'', sequence=True, ephemeral=True))
`);
    expect(said.slice(0, 2)).toEqual(["/seq/a-0000000000", "/seq/0000000002"]);
    expect(said[2]).toMatch(/^\/seq\/b-\d{10}$/);
  });

  test("a transaction is done whole or not at all", async () => {
    const said = await run(`
t = zk.transaction()
t.create('/tx', b'')
t.create('/tx/a', b'1')
t.set_data('/tx/a', b'2')
t.check('/tx/a', 1)
t.create('/tx/s-', b'', sequence=True)
say([str(r) for r in t.commit()][0:2])
t = zk.transaction()
t.delete('/tx/a')
t.check('/tx', 7)
t.create('/tx/b', b'')
say([type(r).__name__ for r in t.commit()])
say(zk.exists('/tx/a') is not None)
`);
    expect(said).toEqual([
      ["/tx", "/tx/a"],
      ["RolledBackError", "BadVersionError", "RuntimeInconsistency"],
      true,
    ]);
  });

  test("one-shot watches", async () => {
    const said = await run(`
import queue
events = queue.Queue()
note = lambda event: events.put([event.type, event.path])
def told():
    return events.get(timeout=60)
zk.exists('/w', watch=note)
zk.create('/w', b'')
say(told())
zk.get('/w', watch=note)
zk.get_children('/w', watch=note)
zk.set('/w', b'1')
say(told())
zk.create('/w/c', b'')
say(told())
zk.get_children('/w/c', watch=note)
zk.get('/w/c', watch=note)
zk.get_children('/w', watch=note)
zk.delete('/w/c')
say(sorted([told(), told(), told()]))
zk.set('/w', b'2')
zk.create('/w/d', b'')
time.sleep(0.1)
say(events.empty())
`);
    expect(said).toEqual([
      ["CREATED", "/w"],
      ["CHANGED", "/w"],
      ["CHILD", "/w"],
      [
        ["CHILD", "/w"],
        ["DELETED", "/w/c"],
        ["DELETED", "/w/c"],
      ],
      true,
    ]);
  });

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
