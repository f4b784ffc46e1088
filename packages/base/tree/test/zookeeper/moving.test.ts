import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededRandom, systemClock, systemRandom } from "@nodeyard/runtime";
import { connect } from "@nodeyard/zookeeper";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import {
  requireZooKeeper,
  startKazoo,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../../testing/zookeeper/index.ts";
import type { Stat } from "../../src/contract.ts";
import { type LeavingTree, openEmbeddedTree, openLeaving, putBack } from "../../src/embedded/index.ts";
import { readDataFolder, writeDataFolder } from "../../src/moving/edge/data-folder.ts";
import { startForwarder } from "../../src/server/forward.ts";
import { startBench } from "../server/bench.ts";

/** A client that holds a lock and an ephemeral znode, and does what it is asked to, with one session through all moves. */
const CLIENT = `
zk = KazooClient(hosts=args[0], timeout=60)
states = []
zk.add_listener(lambda state: states.append(state))
zk.start(timeout=60)
zk.add_auth('digest', 'me:secret')
lock = zk.Lock('/lock', 'me')
while True:
    heard = hear()
    if heard == 'take':
        lock.acquire()
        zk.create('/mine', b'1', ephemeral=True)
        say('taken')
    elif heard == 'holds':
        owner = zk.retry(zk.get, '/mine')[1].ephemeralOwner
        say([owner == zk.client_id[0], zk.retry(zk.Lock('/lock').contenders), KazooState.LOST in states])
    elif heard == 'number':
        say(zk.retry(zk.create, '/numbers/n-', b'', sequence=True, makepath=True))
    elif heard == 'private':
        say(zk.retry(zk.get, '/private')[0].decode())
    elif heard == 'release':
        say(lock.release())
`;

const bytes = (text: string) => Buffer.from(text);

describe.skipIf(requireZooKeeper())("a tree that moves", { timeout: 0 }, () => {
  const servers: ZooKeeperServer[] = [];
  afterAll(() => Promise.all(servers.map((server) => server.stop())));

  async function zooKeeperOn(fill: (dataDir: string) => void): Promise<ZooKeeperServer> {
    const server = await startZooKeeper({
      fill,
      // Snapshots while clients write, so that transactions stand in them and in the log.
      jvm: ["-Dzookeeper.snapCount=60", "-Dzookeeper.extendedTypesEnabled=true"],
    });
    servers.push(server);
    return server;
  }

  const client = (hosts: string) =>
    connect(hosts, { sessionTimeoutMs: 60_000, auth: [{ scheme: "digest", auth: "me:secret" }] });

  /** What a ZooKeeper has of all paths. The root and ZooKeeper's own znodes differ by nature. */
  async function statsOf(server: ZooKeeperServer): Promise<Map<string, unknown>> {
    await using zk = await client(`127.0.0.1:${server.plainPort}`);
    const stats = new Map<string, unknown>();
    const walk = async (path: string): Promise<void> => {
      const { children } = await zk.children(path);
      for (const name of children) {
        const below = path === "/" ? `/${name}` : `${path}/${name}`;
        if (below === "/zookeeper") continue;
        stats.set(below, (await zk.exists(below)) as Stat);
        await walk(below);
      }
    };
    await walk("/");
    return stats;
  }

  const known = ({ stats }: LeavingTree) =>
    new Map([...stats].filter(([path]) => path !== "/").sort(([a], [b]) => (a < b ? -1 : 1)));
  const sorted = (stats: Map<string, unknown>) => new Map([...stats].sort(([a], [b]) => (a < b ? -1 : 1)));

  test("to a ZooKeeper and back keeps versions, numbers, access lists, sessions and locks, and all that was written there", async () => {
    const bench = await startBench();
    onTestFinished(() => rmSync(bench.folder, { recursive: true, force: true }));
    const { port } = bench.server;
    const lives = startKazoo(CLIENT, [bench.hosts]);
    const waits = startKazoo(CLIENT, [bench.hosts]);
    onTestFinished(async () => void (await Promise.all([lives.kill(), waits.kill()])));
    await lives.ask("take");
    waits.say("take");
    {
      await using zk = await client(bench.hosts);
      await zk.create("/private", bytes("seen"), { acl: [{ perms: 31, scheme: "auth", id: "" }] });
      await zk.create("/null");
      await zk.create("/set", bytes("1"));
      for (const data of ["2", "3"]) await zk.set("/set", bytes(data));
      await zk.create("/gone", bytes("x"));
      await zk.delete("/gone");
    }
    expect(await lives.ask("number")).toBe("/numbers/n-0000000000");
    await expect.poll(() => bench.tree.children("/lock")).toHaveLength(2);
    await bench.server.close();
    await bench.tree.close();

    const leaving = openLeaving(bench.folder, Date.now());
    const server = await zooKeeperOn((dataDir) => {
      writeDataFolder(dataDir, leaving.state);
      leaving.leave();
    });
    expect(sorted(await statsOf(server))).toEqual(known(leaving));
    const forwarder = await startForwarder({
      servers: `127.0.0.1:${server.plainPort}`,
      passwords: leaving.passwords,
      clock: systemClock,
      ready: Promise.resolve(),
      socket: join(bench.folder, "tree.sock"),
      tcp: { host: "127.0.0.1", port: port! },
    });
    expect(await lives.ask("holds")).toEqual([true, ["me", "me"], false]);
    expect(await lives.ask("private")).toBe("seen");
    expect(await lives.ask("number")).toBe("/numbers/n-0000000001");

    // A client that sends nonsense loses its own connection.
    const hostile = connectTcp(port!, "127.0.0.1");
    hostile.on("error", () => {}).write(Buffer.from([0, 0, 0, 1, 0]));
    await once(hostile, "close");
    expect(await lives.ask("private")).toBe("seen");

    // What ZooKeeper's clients do meanwhile, through several snapshots and with its end in the middle.
    {
      await using zk = await client(`127.0.0.1:${server.plainPort}`);
      const gone = await client(`127.0.0.1:${server.plainPort}`);
      for (let at = 0; at < 200; at++) {
        await zk.create(`/many-${at}`, bytes("x".repeat(at)));
        if (at % 3 === 0) await zk.set(`/many-${at}`, bytes("changed"));
        if (at % 5 === 0) await zk.delete(`/many-${at}`);
        if (at % 7 === 0) await gone.create(`/ephemeral-${at}`, bytes(""), { ephemeral: true });
      }
      await zk.multi([
        { op: "create", path: "/both", data: bytes("1") },
        { op: "set", path: "/set", data: bytes("4") },
      ]);
      await expect(
        zk.multi([
          { op: "create", path: "/neither", data: bytes("1") },
          { op: "delete", path: "/nowhere" },
        ]),
      ).rejects.toThrow();
      await zk.setAcl("/null", [{ perms: 1, scheme: "world", id: "anyone" }]);
      await gone.close();
    }
    const before = sorted(await statsOf(server));
    await server.kill();
    await forwarder.close();
    leaving.close();

    await expect(
      openEmbeddedTree({ folder: bench.folder, clock: systemClock, random: systemRandom }),
    ).rejects.toMatchObject({ code: "tree.store_moved" });
    const stopped = readDataFolder([server.dataDir]);
    // The one that somebody started on an empty folder, and one whose log is in another.
    const other = await zooKeeperOn(() => {});
    const empty = readDataFolder([other.dataDir]);
    expect(() => putBack(bench.folder, empty, Date.now())).toThrow(/ends before the tree moved there/);
    const without = { ...stopped, snapshot: stopped.state.zxid };
    expect(() => putBack(bench.folder, without, Date.now())).toThrow(/name dataLogDir, too/);
    putBack(bench.folder, stopped, Date.now());
    expect(existsSync(join(bench.folder, "tree.sqlite.moved"))).toBe(true);
    const back = await startBench({ folder: bench.folder, tcp: { port: port! } });
    onTestFinished(() => back.close());
    for (const [path, stat] of before) expect([path, await back.tree.stat(path)]).toEqual([path, stat]);
    expect(back.tree.core.znodeCount).toBe(before.size + 1);
    expect(await lives.ask("number")).toBe("/numbers/n-0000000002");
    expect(await lives.ask("holds")).toEqual([true, ["me", "me"], false]);
    expect(await lives.ask("private")).toBe("seen");
    await back.tree.delete("/mine");
    await lives.ask("release");
    expect(await waits.hear()).toBe("taken");
  });

  test("is not moved onto data, nor taken from what would be lost", async () => {
    const folder = mkdtempSync(join(tmpdir(), "nodeyard-moving-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const tree = await openEmbeddedTree({ folder, clock: systemClock, random: seededRandom(1) });
    await tree.create("/a");
    await tree.close();
    const leaving = openLeaving(folder, Date.now());
    expect(() => writeDataFolder(join(folder, "nowhere"), leaving.state)).toThrow(/there is no folder/);
    const server = await zooKeeperOn((dataDir) => writeDataFolder(dataDir, leaving.state));
    expect(() => writeDataFolder(server.dataDir, leaving.state)).toThrow(/has data already/);
    leaving.close();
    expect(() => putBack(folder, { state: leaving.state, snapshot: undefined }, Date.now())).toThrow(
      /has not moved, and that would be lost/,
    );
    const refused = async (make: (zk: Awaited<ReturnType<typeof client>>) => Promise<unknown>) => {
      await using zk = await client(`127.0.0.1:${server.plainPort}`);
      await make(zk);
      return () => readDataFolder([server.dataDir]);
    };
    const address = [{ perms: 31, scheme: "ip", id: "127.0.0.1" }];
    expect(await refused((zk) => zk.create("/by-address", bytes(""), { acl: address }))).toThrow(
      /^the access list of \/by-address is refused: ip:127.0.0.1/,
    );
    expect(await refused((zk) => zk.create("/c", bytes(""), { container: true }))).toThrow(/by-address/);
    expect(await refused((zk) => zk.delete("/by-address"))).toThrow(
      /\/c is a container or has a time to live/,
    );
    await refused((zk) => zk.delete("/c"));
    expect(() => readDataFolder([folder])).toThrow(/have no snapshot that can be read/);

    // A log in the middle that is damaged, and one that is missing.
    const logs = join(server.dataDir, "version-2");
    await refused(async (zk) => {
      for (let at = 0; at < 200; at++) await zk.create(`/many-${at}`);
    });
    await server.kill();
    const [first, second] = readdirSync(logs)
      .filter((name) => name.startsWith("log."))
      .sort((a, b) => (BigInt(`0x${a.slice(4)}`) < BigInt(`0x${b.slice(4)}`) ? -1 : 1));
    for (const name of readdirSync(logs))
      if (name.startsWith("snapshot.") && name !== `snapshot.${leaving.state.zxid.toString(16)}`)
        rmSync(join(logs, name));
    const whole = readFileSync(join(logs, second!));
    writeFileSync(
      join(logs, second!),
      Buffer.concat([whole.subarray(0, 40), Buffer.from([255]), whole.subarray(41)]),
    );
    expect(() => readDataFolder([server.dataDir])).toThrow(/the transaction at byte 16 is damaged/);
    writeFileSync(join(logs, second!), whole);
    rmSync(join(logs, first!));
    expect(() => readDataFolder([server.dataDir])).toThrow(/the transactions between .* are missing/);
  });
});
