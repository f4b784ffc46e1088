import { seededRandom } from "@nodeyard/runtime";
import { connect, type Stat, type WatchEvent, wire, type ZooKeeper } from "@nodeyard/zookeeper";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../../testing/zookeeper/index.ts";
import { type Bench, startBench } from "./bench.ts";

const { CreateFlag, OpCode } = wire;
const OPEN = [{ perms: 31, scheme: "world", id: "anyone" }];
/** Each client has a password of its own. The first list is the usual one; the last is refused. */
const AUTH = ["one:secret", "two:secret"] as const;
const LISTS: readonly (readonly wire.Acl[])[] = [
  OPEN,
  [{ perms: 31, scheme: "auth", id: "" }],
  [
    { perms: 1, scheme: "world", id: "anyone" },
    { perms: 30, scheme: "auth", id: "" },
  ],
  [
    { perms: 14, scheme: "world", id: "anyone" },
    { perms: 14, scheme: "world", id: "anyone" },
    { perms: 17, scheme: "auth", id: "" },
  ],
  [{ perms: 31, scheme: "digest", id: "nohash" }],
];
const NAMES = ["a", "b", "a/c", "a/d", "b/e", "a/c/f"];
/** What is no path. A real server misses its parent first, and says NoNode when asked to delete it; ours always BadArguments. */
const ODD_NAMES = [".", ".."];
const STEPS = 400;

interface Step {
  readonly client: 0 | 1;
  readonly request: wire.Request;
}

/** The same requests to a real ZooKeeper and to our server: every reply, Stat and watch event must be the same. */
describe.skipIf(requireZooKeeper())("beside a real ZooKeeper", () => {
  let real: ZooKeeperServer;
  let bench: Bench;

  beforeAll(async () => {
    [real, bench] = await Promise.all([startZooKeeper(), startBench()]);
  });
  afterAll(async () => {
    await Promise.all([real.stop(), bench.close()]);
  });

  test.each([1, 2, 3, 4])("requests at random, seed %i", async (seed) => {
    const root = `/seed${seed}`;
    const steps = script(seed, root);
    const theirs = await play(`${real.host}:${real.port}`, root, steps);
    const ours = await play(bench.hosts, root, steps);
    for (const [index, entry] of theirs.entries()) {
      expect([steps[index], ours[index]]).toEqual([steps[index], entry]);
    }
    expect(ours.length).toBe(theirs.length);
  });
});

function script(seed: number, root: string): Step[] {
  const random = seededRandom(seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random.float() * from.length)]!;
  const good = () => `${root}/${pick(NAMES)}`;
  const path = () => (random.float() < 0.05 ? `${root}/${pick(ODD_NAMES)}` : good());
  const version = () => pick([-1, -1, 0, 1]);
  const acl = () => (random.float() < 0.8 ? OPEN : pick(LISTS));
  const bytes = () => (random.float() < 0.1 ? null : new Uint8Array(Math.floor(random.float() * 4)));
  const write = (): wire.MultiOpRequest => {
    const what = random.float();
    if (what < 0.45) {
      const sequential = random.float() < 0.2;
      const flags = sequential
        ? pick([CreateFlag.persistentSequential, CreateFlag.ephemeralSequential])
        : pick([CreateFlag.persistent, CreateFlag.persistent, CreateFlag.ephemeral]);
      const at = path();
      // A text that is no path is refused for that, whatever else is wrong; a real server looks at the list first.
      const list = ODD_NAMES.some((name) => at === `${root}/${name}`) ? OPEN : acl();
      return { type: pick([OpCode.create, OpCode.create2]), path: at, data: bytes(), acl: list, flags };
    }
    if (what < 0.65) return { type: OpCode.setData, path: path(), data: bytes(), version: version() };
    if (what < 0.9) return { type: OpCode.delete, path: good(), version: version() };
    return { type: OpCode.check, path: path(), version: version() };
  };
  const request = (): wire.Request => {
    const what = random.float();
    if (what < 0.5) {
      const op = write();
      return op.type === OpCode.check ? { type: OpCode.multi, ops: [op] } : op;
    }
    if (what < 0.65)
      return { type: OpCode.multi, ops: Array.from({ length: 1 + Math.floor(random.float() * 4) }, write) };
    if (what < 0.7) {
      const at = path();
      return { type: OpCode.addWatch, path: at, mode: at.length % 2 };
    }
    if (what < 0.75) return { type: OpCode.setAcl, path: path(), acl: pick(LISTS), version: version() };
    if (what < 0.8) return { type: OpCode.getAcl, path: path() };
    const type = pick([OpCode.exists, OpCode.getData, OpCode.getChildren, OpCode.getChildren2]);
    return { type, path: path(), watch: random.float() < 0.6 };
  };
  // Servers before 3.9 keep one kind of watch per path and client (ZOOKEEPER-4466), ours keeps all: the script asks for one.
  return Array.from({ length: STEPS }, (): Step => {
    const wanted = request();
    if (wanted.type === OpCode.addWatch) return { client: 0, request: wanted };
    if ("watch" in wanted && wanted.watch) return { client: 1, request: wanted };
    return { client: pick([0, 1] as const), request: wanted };
  });
}

/** What each step answered and which events each client got by then, zxids replaced by their rank. */
async function play(hosts: string, root: string, steps: readonly Step[]): Promise<unknown[]> {
  const connected = (auth: string) => connect(hosts, { auth: [{ scheme: "digest", auth }] });
  const clients = await Promise.all([connected(AUTH[0]), connected(AUTH[1])]);
  const events: [string[], string[]] = [[], []];
  for (const [index, client] of clients.entries())
    client.onWatchEvent((event: WatchEvent) => events[index as 0 | 1].push(`${event.type} ${event.path}`));
  const owners = clients.map((client) => client.session.id);
  await clients[0].create(root);
  const log: unknown[] = [];
  for (const step of steps) {
    const answer = await ask(clients[step.client], step.request);
    // Both have told all events of this change when both have answered a later request.
    await Promise.all(clients.map((client) => client.sync("/")));
    log.push({ answer, events: events.map((list) => list.splice(0)) });
  }
  await clients[1].close();
  const rest = await clients[0].children(root);
  log.push([...rest.children].sort(), rest.stat, events[0].splice(0).sort());
  await clients[0].close();
  return ranked(log, owners);
}

function ask(client: ZooKeeper, request: wire.Request): Promise<unknown> {
  return new Promise((resolve) => {
    client.submit(request, (error, response) => resolve(error?.code ?? response));
  });
}

/** Zxids differ between servers, their order must not; times are left out. */
function ranked(log: readonly unknown[], owners: readonly bigint[]): unknown[] {
  const zxids = new Set<bigint>();
  const stats: (Stat & Record<string, unknown>)[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null || value instanceof Uint8Array) return;
    if ("czxid" in value) stats.push(value as Stat & Record<string, unknown>);
    for (const inner of Object.values(value)) visit(inner);
    if ("children" in value && Array.isArray(value.children)) value.children.sort();
  };
  visit(log);
  for (const stat of stats) for (const zxid of [stat.czxid, stat.mzxid, stat.pzxid]) zxids.add(zxid);
  const order = [...zxids].sort((a, b) => (a < b ? -1 : 1));
  const rank = new Map(order.map((zxid, index) => [zxid, BigInt(index)]));
  for (const stat of stats) {
    Object.assign(stat, {
      czxid: rank.get(stat.czxid),
      mzxid: rank.get(stat.mzxid),
      pzxid: rank.get(stat.pzxid),
      ctime: 0,
      mtime: 0,
      ephemeralOwner: BigInt(owners.indexOf(stat.ephemeralOwner) + 1),
    });
  }
  return [...log];
}
