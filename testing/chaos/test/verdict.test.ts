import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededRandom } from "@nodeyard/runtime";
import type { AppliedWrite, Op } from "@nodeyard/tree";
import { describe, expect, test } from "vitest";
import { kazoo, requireZooKeeper, startZooKeeper } from "../../zookeeper/index.ts";
import { EffectNames } from "../inside/effects.ts";
import { killPlan } from "../plan.ts";
import { EmbeddedLog } from "../raw-log/embedded.ts";
import { decodeWrite, encodeWrite } from "../raw-log/lines.ts";
import { readZooKeeperLog } from "../raw-log/zookeeper.ts";
import { LIMIT } from "../site.ts";
import { checkCloud, checkLog } from "../verdict.ts";

let zxid = 0n;
const write = (client: string, ...ops: Op[]): AppliedWrite => {
  zxid += 1n;
  return { zxid, at: Number(zxid), client, session: 1n, ops, results: [] };
};
const create = (path: string, data: object | string = ""): Op => ({
  op: "create",
  path,
  data: Buffer.from(typeof data === "string" ? data : JSON.stringify(data)),
  sequential: true,
});
const set = (path: string, data: object, version?: number): Op => ({
  op: "set",
  path,
  data: Buffer.from(JSON.stringify(data)),
  ...(version === undefined ? {} : { version }),
});
const NODE = "/nodepool/nodes/0000000001";
const node = (state: string, request: string) => ({
  state,
  provider: "fake-cloud",
  pool: "main",
  type: ["small"],
  allocated_to: request,
});
const request = (state: string, nodes: string[] = []) => ({ state, node_types: ["small"], nodes });
const lockOf = (id: string) => `/nodepool/requests-lock/${id}/${"a".repeat(32)}__lock__0000000000`;
const nodeLock = (n: number) => `${NODE}/lock/${"b".repeat(32)}__lock__000000000${n}`;

/** A life in which everything is right, up to the delivery. */
const delivered = (id: string): AppliedWrite[] => [
  write("zuul", create(`/nodepool/requests/${id}`, request("requested"))),
  write("one", create(lockOf(id)), set(`/nodepool/requests/${id}`, request("pending"))),
  write("one", create(NODE, node("init", id))),
  write("one", create(nodeLock(0)), set(NODE, node("building", id))),
  write("one", set(NODE, node("ready", id))),
  write(
    "one",
    { op: "delete", path: nodeLock(0) },
    set(`/nodepool/requests/${id}`, request("fulfilled", ["0000000001"])),
  ),
];

describe("the verdict on a raw log", () => {
  test("a right life passes", () => {
    expect(checkLog(delivered("100-0000000001")).nodes.size).toBe(1);
  });

  test("a node that is given to two requests is found, with the history of it", () => {
    const [first, second] = ["100-0000000001", "100-0000000002"];
    const twice = [
      ...delivered(first),
      write("zuul", create(`/nodepool/requests/${second}`, request("requested"))),
      write("two", create(lockOf(second)), set(`/nodepool/requests/${second}`, request("pending"))),
      write("two", create(nodeLock(1)), set(NODE, node("ready", second))),
      write(
        "two",
        { op: "delete", path: nodeLock(1) },
        set(`/nodepool/requests/${second}`, request("fulfilled", ["0000000001"])),
      ),
    ];
    expect(() => checkLog(twice)).toThrow(
      /leased to one request at most.*\n.*create \/nodepool\/nodes\/0000000001/s,
    );
  });

  test("a write without the lock, and one more node than the limit, are found", () => {
    const id = "100-0000000001";
    expect(() => checkLog([...delivered(id), write("two", set(NODE, node("deleting", id)))])).toThrow(
      /only under its lock/,
    );
    const many = Array.from({ length: LIMIT + 1 }, (_, index) =>
      write("one", create(`/nodepool/nodes/${String(index).padStart(10, "0")}`, node("init", id))),
    );
    expect(() => checkLog(many)).toThrow(/limits are never exceeded/);
  });

  test("any launcher ends the hold of a lease, by the version that it saw; this much a line of the log keeps", () => {
    const id = "100-0000000001";
    const hold = create(nodeLock(1), "Nodeyard:lease:abc");
    const life = (version?: number) => [
      ...delivered(id),
      write("one", hold),
      write("two", set(NODE, node("used", id), version), { op: "delete", path: nodeLock(1) }),
    ];
    const read = (writes: readonly AppliedWrite[]) =>
      writes.map((each) => decodeWrite(encodeWrite(each))).filter((each) => each !== undefined);
    expect(checkLog(read(life(3))).nodes.get("0000000001")?.data.state).toBe("used");
    expect(() => checkLog(read(life()))).toThrow(/only under its lock/);
  });

  test("a machine without an end is found", () => {
    const folder = mkdtempSync(join(tmpdir(), "nodeyard-verdict-"));
    const file = join(folder, "cloud");
    const tag = { installation: "i", provider: "p", pool: "main", nodeId: "0000000001" };
    const made = (id: string) => JSON.stringify({ op: "create", at: 1, server: { id, tag } });
    writeFileSync(
      file,
      [made("a"), JSON.stringify({ op: "delete", at: 2, id: "a", keepsRecord: false }), made("b")].join("\n"),
    );
    expect([...checkCloud(file)]).toEqual([["b", "0000000001"]]);
    rmSync(folder, { recursive: true });
  });
});

test("a log that has more than the disk is cut; one that the disk contradicts is an error", () => {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-verdict-"));
  const file = join(folder, "log");
  const writes = [write("1", create("/a")), write("1", create("/b")), write("1", create("/c"))];
  writeFileSync(file, `${writes.map(encodeWrite).join("\n")}\n{"unfinished":`);
  const log = new EmbeddedLog(file);
  log.died({ zxid: writes[1]!.zxid, paths: new Set(["/", "/a", "/b"]), orphans: new Map([[1n, ["/b"]]]) });
  expect(log.all().flatMap(({ ops }) => ops.map(({ op, path }) => `${op} ${path}`))).toEqual([
    "create /a",
    "create /b",
    "delete /b",
  ]);
  // The next process died before it opened the store: the disk is as it was.
  log.died({ zxid: writes[1]!.zxid, paths: new Set(["/", "/a", "/b"]), orphans: new Map([[1n, ["/b"]]]) });
  expect(log.all().flatMap(({ ops }) => ops)).toHaveLength(3);
  const other = new EmbeddedLog(file);
  const lost = { zxid: writes[1]!.zxid, paths: new Set(["/", "/a"]), orphans: new Map() };
  expect(() => other.died(lost)).toThrow("/b is in the log and not on the disk");
  rmSync(folder, { recursive: true });
});

test.skipIf(requireZooKeeper())(
  "ZooKeeper's own log is read: creates, sets, refused and carried out multis, a session's end",
  async () => {
    const zookeeper = await startZooKeeper();
    try {
      await kazoo(
        `zk = client(args[0])
zk.create("/a", b"one")
zk.set("/a", b"two")
zk.create("/a/s-", b"", ephemeral=True, sequence=True)
good = zk.transaction(); good.check("/a", 1); good.create("/b", b"x"); good.set_data("/a", b"three"); good.commit()
bad = zk.transaction(); bad.create("/c", b""); bad.check("/a", 99); bad.commit()
zk.delete("/b")
zk.stop()
`,
        [`127.0.0.1:${zookeeper.port}`],
      );
      const reported = readZooKeeperLog(zookeeper.dataDir).map(({ ops, sessionEnd }) => [
        ...ops.map((op) => {
          const version = op.op === "set" ? ` for ${op.version}` : "";
          return `${op.op} ${op.path}${"data" in op ? ` ${Buffer.from(op.data ?? "")}` : ""}${version}`;
        }),
        ...(sessionEnd ? ["session ended"] : []),
      ]);
      expect(reported).toEqual([
        ["create /a one"],
        ["set /a two for 0"],
        ["create /a/s-0000000000 "],
        ["check /a", "create /b x", "set /a three for 1"],
        ["delete /b"],
        ["delete /a/s-0000000000", "session ended"],
      ]);
    } finally {
      await zookeeper.stop();
    }
  },
);

test("a kill plan names every place once before any twice, and every fifth kill comes from outside", () => {
  const plan = killPlan(60, seededRandom(1));
  expect(plan.filter((point) => point === undefined)).toHaveLength(12);
  const places = plan.flatMap((point) => (point === undefined ? [] : `${point.effect} ${point.moment}`));
  expect(new Set(places).size).toBe(places.length);
});

test("effects are recognised by what a commit does", () => {
  const id = "100-0000000001";
  const names = new EffectNames();
  expect(names.of([create("/nodepool/nodes/", node("init", id))])).toEqual(["node.create"]);
  expect(names.of([create(nodeLock(0)), set(NODE, node("building", id))])).toEqual(["node.lock"]);
  expect(names.of([set(NODE, node("ready", id))])).toEqual(["node.ready"]);
  expect(names.of([set(NODE, node("ready", id))])).toEqual(["node.reuse"]);
  expect(names.of([create(nodeLock(0), "Nodeyard:lease:abc")])).toEqual(["lease.hold"]);
  expect(names.of([set(`/nodepool/requests/${id}`, request("fulfilled"))])).toEqual(["request.fulfil"]);
});
