import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  kazoo,
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../../testing/zookeeper/index.ts";
import { type Bench, startBench } from "./bench.ts";

type Target = "ours" | "ZooKeeper";
const TARGETS: readonly Target[] = ["ours", "ZooKeeper"];

/** The same kazoo scripts on our server and on a real ZooKeeper: one expectation, which both must meet. */
describe.skipIf(requireZooKeeper())("kazoo on either server", () => {
  let real: ZooKeeperServer;
  let bench: Bench;

  beforeAll(async () => {
    [real, bench] = await Promise.all([startZooKeeper(), startBench()]);
  });
  afterAll(async () => {
    await Promise.all([real?.stop(), bench?.close()]);
  });

  const hostsOf = (target: Target) => (target === "ours" ? bench.hosts : `${real.host}:${real.port}`);

  async function run(target: Target, script: string): Promise<unknown[]> {
    const out = await kazoo(PRELUDE + script, [hostsOf(target)]);
    return out
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
  }

  describe.each(TARGETS)("%s", (target) => {
    test("tells its version, its state and its clients", async () => {
      const said = await run(
        target,
        `
zk = client(hosts)
say(len(zk.server_version()) >= 2)
zk.exists('/watched', watch=print)
words = {word: zk.command(word.encode()) for word in ('isro', 'envi', 'stat', 'srvr', 'conf', 'cons', 'wchs')}
say(words['isro'])
say(words['envi'].splitlines()[0])
say(words['stat'].splitlines()[0].split(': ')[0] == 'Zookeeper version')
# ZooKeeper shows 0 in place of 1 for a connection that it works on at the moment.
say('0' in re.findall(r'^ /127.0.0.1:[0-9]+\\[([01])\\]\\(queued=0,recved=', words['stat'], re.M))
# One is outstanding while kazoo's ping is answered.
say(re.findall(r'^Mode: standalone$|^Outstanding: (?=[0-9]+$)', words['stat'], re.M))
say(int(re.search(r'^Connections: (.*)$', words['stat'], re.M).group(1)) >= 2)
say('Clients' in words['srvr'])
pairs = dict(line.split('=') for line in words['conf'].splitlines())
say([pairs['clientPort'] == hosts.split(':')[1], int(pairs['minSessionTimeout']) < int(pairs['maxSessionTimeout'])])
say(re.findall(r'sid=(0x[0-9a-f]+),', words['cons']) == [hex(zk.client_id[0])])
say(words['wchs'])
zk.stop()
`,
      );
      expect(said).toEqual([
        true,
        "rw",
        "Environment:",
        true,
        true,
        expect.arrayContaining(["Mode: standalone", "Outstanding: "]),
        true,
        false,
        [true, true],
        true,
        "1 connections watching 1 paths\nTotal watches:1\n",
      ]);
    });

    test("tells null data from empty data", async () => {
      const said = await run(
        target,
        `
zk = client(hosts)
def tell(path):
    data, stat = zk.get(path)
    say([None if data is None else data.decode(), stat.dataLength])
# Debian's kazoo takes no None; later releases send it so.
def ask(request):
    result = zk.handler.async_result()
    zk._call(request, result)
    result.get()
ask(Create('/null', None, OPEN_ACL_UNSAFE, 0))
tell('/null')
zk.set('/null', b'')
tell('/null')
ask(SetData('/null', None, -1))
tell('/null')
t = zk.transaction()
t.set_data('/null', b'x')
t.operations.append(Create('/null/child', None, OPEN_ACL_UNSAFE, 0))
say(len(t.commit()))
tell('/null')
tell('/null/child')
zk.stop()
`,
      );
      expect(said).toEqual([[null, 0], ["", 0], [null, 0], 2, ["x", 1], [null, 0]]);
    });

    test("keeps access lists and obeys them", async () => {
      const said = await run(
        target,
        `
owner = client(hosts, auth_data=[('digest', 'me:secret')])
other = client(hosts)
attempt(lambda: other.create('/mine', b'', acl=CREATOR_ALL_ACL))
owner.create('/mine', b'1', acl=CREATOR_ALL_ACL)
owner.create('/mine/child', b'')
acls, stat = owner.get_acls('/mine')
say([entries(acls), stat.aversion])
attempt(lambda: owner.get('/mine'))
say('other')
attempt(lambda: other.exists('/mine'))
attempt(lambda: other.get('/mine'))
attempt(lambda: other.get_children('/mine'))
attempt(lambda: other.get_acls('/mine'))
attempt(lambda: other.set('/mine', b'2'))
attempt(lambda: other.create('/mine/new', b''))
attempt(lambda: other.create('/mine/child', b''))
attempt(lambda: other.set('/mine/child', b'x'))
attempt(lambda: other.delete('/mine/child'))
attempt(lambda: other.set_acls('/mine', OPEN_ACL_UNSAFE))
attempt(lambda: other.get('/mine/child'))
say('set')
say(owner.set_acls('/mine', [world(Permissions.READ), digest('me', Permissions.ALL)], version=0).aversion)
attempt(lambda: owner.set_acls('/mine', CREATOR_ALL_ACL, version=0))
attempt(lambda: owner.set_acls('/none', CREATOR_ALL_ACL))
attempt(lambda: owner.set_acls('/mine', []))
attempt(lambda: owner.set_acls('/mine', [ACL(31, Id('nonsense', 'x'))]))
attempt(lambda: owner.set_acls('/mine', [ACL(31, Id('digest', 'nohash'))]))
attempt(lambda: owner.set_acls('/mine', [ACL(31, Id('world', 'someone'))]))
say(owner.get('/mine')[1].version)
say('shared')
attempt(lambda: other.get('/mine'))
attempt(lambda: other.set('/mine', b'2'))
say(entries(other.get_acls('/mine')[0]))
say(entries(owner.get_acls('/mine')[0]))
say('parent')
owner.set_acls('/mine', [world(Permissions.DELETE), digest('me', Permissions.ALL)])
attempt(lambda: other.get('/mine'))
attempt(lambda: other.delete('/mine/child'))
attempt(lambda: other.delete('/mine/child'))
attempt(lambda: other.get_acls('/mine'))
attempt(lambda: other.delete('/mine'))
say(other.exists('/mine'))
for one in (owner, other):
    one.stop()
`,
      );
      const me = "me:016djjlksVQS5RgX3M7biBGyYwY=";
      const none = "NoAuthError";
      expect(said).toEqual([
        "InvalidACLError",
        [[[31, "digest", me]], 0],
        "ok",
        ...["other", "ok", none, none, none, none, none, none, "ok", none, none, "ok"],
        ...["set", 1, "BadVersionError", "NoNodeError"],
        ...["InvalidACLError", "InvalidACLError", "InvalidACLError", "InvalidACLError", 0],
        ...["shared", "ok", none],
        [
          [1, "world", "anyone"],
          [31, "digest", "me:x"],
        ],
        [
          [1, "world", "anyone"],
          [31, "digest", me],
        ],
        ...["parent", none, "ok", "NoNodeError", none, "ok", null],
      ]);
    });

    test("refuses a transaction for its first operation that is not allowed", async () => {
      const said = await run(
        target,
        `
owner = client(hosts, auth_data=[('digest', 'me:secret')])
other = client(hosts)
owner.create('/locked', b'', acl=CREATOR_ALL_ACL)
def outcome(act):
    t = other.transaction()
    act(t)
    return [type(one).__name__ for one in t.commit()]
def beneath(t):
    t.create('/free', b'')
    t.create('/locked/child', b'')
    t.create('/free', b'', acl=CREATOR_ALL_ACL)
say(outcome(beneath))
say(outcome(lambda t: t.check('/locked', 0)))
say(outcome(lambda t: t.set_data('/locked', b'')))
say(outcome(lambda t: t.create('/free', b'', acl=CREATOR_ALL_ACL)))
def inside(t):
    t.create('/own', b'', acl=READ_ACL_UNSAFE)
    t.create('/own/child', b'')
say(outcome(inside))
say([other.exists('/free'), other.exists('/own')])
for one in (owner, other):
    one.stop()
`,
      );
      expect(said).toEqual([
        ["RolledBackError", "NoAuthError", "RuntimeInconsistency"],
        ["NoAuthError"],
        ["NoAuthError"],
        ["InvalidACLError"],
        ["RolledBackError", "NoAuthError"],
        [null, null],
      ]);
    });

    test("tells a watcher nothing of what it may not read", async () => {
      const said = await run(
        target,
        `
owner = client(hosts, auth_data=[('digest', 'me:secret')])
other = client(hosts)
events = queue.Queue()
note = lambda event: events.put([event.type, event.path])
owner.create('/secret', b'', acl=CREATOR_ALL_ACL)
owner.create('/public', b'')
for path in ('/secret', '/secret/new', '/public'):
    other.exists(path, watch=note)
attempt(lambda: other.get('/secret', watch=note))
owner.set('/secret', b'1')
owner.create('/secret/new', b'', acl=CREATOR_ALL_ACL)
owner.set('/public', b'1')
say(events.get(timeout=60))
say(events.empty())
for one in (owner, other):
    one.stop()
`,
      );
      expect(said).toEqual(["NoAuthError", ["CHANGED", "/public"], true]);
    });

    test("knows a client by all that it has proved, and again after a reconnect", async () => {
      const said = await run(
        target,
        `
zk = client(hosts, auth_data=[('digest', 'one:secret')])
zk.add_auth('digest', 'two:secret')
zk.add_auth('digest', 'two:secret')
zk.create('/both', b'', acl=CREATOR_ALL_ACL)
say(entries(zk.get_acls('/both')[0]) == entries([digest('one', 31), digest('two', 31)]))
states = queue.Queue()
zk.add_listener(states.put)
zk._connection._socket.shutdown(2)
while states.get(timeout=60) != KazooState.CONNECTED:
    pass
attempt(lambda: zk.get('/both'))
zk.stop()
other = client(hosts)
attempt(lambda: other.get('/both'))
attempt(lambda: other.add_auth('nonsense', 'x'))
other.stop()
`,
      );
      expect(said).toEqual([true, "ok", "NoAuthError", "AuthFailedError"]);
    });
  });
});

/** What the scripts share: \`attempt\` names what an act returns or raises. */
const PRELUDE = `
import queue, re
from kazoo.protocol.serialization import Create, SetData
from kazoo.security import *
hosts = args[0]
def attempt(act):
    try:
        act()
        say('ok')
    except Exception as error:
        say(type(error).__name__)
def entries(acls):
    return sorted([one.perms, one.id.scheme, one.id.id] for one in acls)
digest = lambda user, perms: ACL(perms, Id('digest', make_digest_acl_credential(user, 'secret')))
world = lambda perms: ACL(perms, Id('world', 'anyone'))
`;
