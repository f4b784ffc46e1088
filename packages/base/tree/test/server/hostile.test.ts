import { connect } from "node:net";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { wire } from "@nodeyard/zookeeper";
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import { attachEmbeddedTree } from "../../src/server/index.ts";
import { type Bench, startBench } from "./bench.ts";
import { RawClient } from "./raw-client.ts";

const { ErrorCode, OpCode } = wire;

let bench: Bench;
const raws: RawClient[] = [];

afterEach(async () => {
  for (const raw of raws.splice(0)) raw.destroy();
  await bench.close();
});

function raw(): RawClient {
  const made = new RawClient(bench.server.port ?? 0);
  raws.push(made);
  return made;
}

const acl = [{ perms: 31, scheme: "world", id: "anyone" }];
const ping: wire.Request = { type: OpCode.ping };

function frameOf(body: (writer: wire.JuteWriter) => void): Buffer {
  const writer = new wire.JuteWriter();
  const mark = writer.beginFrame();
  body(writer);
  writer.endFrame(mark);
  return Buffer.from(writer.written());
}

function requestFrame(xid: number, request: wire.Request): Buffer {
  return frameOf((writer) => {
    wire.requestHeader.write(writer, { xid, type: request.type });
    wire.writeRequest(writer, request);
  });
}

function connectFrame(sessionId: bigint): Buffer {
  const passwd = new Uint8Array(16);
  const request = {
    protocolVersion: 0,
    lastZxidSeen: 0n,
    timeOut: 10_000,
    sessionId,
    passwd,
    readOnly: false,
  };
  return frameOf((writer) => wire.connectRequest.write(writer, request));
}

test("what follows a refused session in the same write is not listened to", async () => {
  bench = await startBench();
  const one = raw();
  one.socket.write(Buffer.concat([connectFrame(77n), ...Array.from({ length: 50 }, () => connectFrame(0n))]));
  await one.closed;
  expect(bench.tree.core.sessionCount("wire")).toBe(0);
});

test("what follows the end of a session in the same write is not listened to", async () => {
  bench = await startBench();
  const one = raw();
  await one.connect();
  one.socket.write(
    Buffer.concat([
      requestFrame(1, { type: OpCode.closeSession }),
      requestFrame(2, { type: OpCode.addWatch, path: "/", mode: 1 }),
      requestFrame(3, ping),
    ]),
  );
  expect(await one.header()).toMatchObject({ xid: 1, err: 0 });
  expect(await one.header()).toBeUndefined();
});

test("a client whose connection is being closed cannot keep it open by sending a byte now and then", async () => {
  bench = await startBench({ limits: { maxConnections: 1 } });
  const socket = connect({ port: bench.server.port ?? 0, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => undefined);
  socket.resume();
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.write("ruok");
  const dribble = setInterval(() => socket.write("x"), 200);
  await closed;
  clearInterval(dribble);
  await expect.poll(() => raw().connect()).toBeDefined();
});

test("a short request cannot ask for an answer that fills the memory", async () => {
  bench = await startBench({ limits: { maxQueuedBytes: 4 << 20 } });
  await bench.tree.create("/big", new Uint8Array(500_000));
  for (let i = 0; i < 200; i++) await bench.tree.create(`/child-${i}`);
  const one = raw();
  await one.connect();
  const many = (type: 4 | 8, path: string, count: number): wire.Request => ({
    type: OpCode.multiRead,
    ops: Array.from({ length: count }, () => ({ type, path, watch: false })),
  });
  expect((await one.ask(1, many(OpCode.getData, "/big", 20_000)))?.err).toBe(ErrorCode.quotaExceeded);
  expect((await one.ask(2, many(OpCode.getChildren, "/", 20_000)))?.err).toBe(ErrorCode.quotaExceeded);
  expect((await one.ask(3, many(OpCode.getData, "/big", 2)))?.err).toBe(0);
});

test("an answer that cannot be written costs its connection, also when it had to wait for the disk", async () => {
  bench = await startBench();
  const { core } = bench.tree;
  const one = raw();
  const other = raw();
  await one.connect();
  await other.connect();
  // No store that is whole has such a child; what matters is that the fault surfaces behind the gate.
  const children = core.children.bind(core);
  core.children = (path) => (path === "/" ? [Symbol("no name") as unknown as string] : children(path));
  one.socket.write(
    Buffer.concat([
      requestFrame(1, { type: OpCode.create, path: "/a", data: new Uint8Array(1), acl, flags: 0 }),
      requestFrame(2, { type: OpCode.getChildren, path: "/", watch: false }),
    ]),
  );
  await one.closed;
  expect(bench.server.cuts.get("error")).toBe(1);
  expect(await other.ask(-2, ping)).toMatchObject({ err: 0 });
});

test("a thousand half-finished handshakes block no client for longer than a handshake may take", async () => {
  bench = await startBench({ limits: { maxConnections: 300, handshakeMs: 500 } });
  const attackers = Array.from({ length: 1_000 }, () => raw());
  const start = connectFrame(0n);
  for (const one of attackers) one.socket.write(start.subarray(0, 20));
  await Promise.all(attackers.map((one) => one.closed));
  expect(await raw().connect()).toBeDefined();
  expect(bench.tree.core.sessionCount("wire")).toBe(1);
});

test("many TCP connections do not lock the operator out of the Unix socket", async () => {
  bench = await startBench({ limits: { maxConnections: 3, maxSessions: 4 } });
  for (let i = 0; i < 3; i++) expect(await raw().connect()).toBeDefined();
  expect(await raw().connect()).toBeUndefined();
  const tree = await attachEmbeddedTree({ folder: bench.folder, clock: systemClock, random: systemRandom });
  expect(await tree.stat("/")).toBeDefined();
  await tree.close();
});

test("the last tenth of the sessions is for the Unix socket", async () => {
  bench = await startBench({ limits: { maxSessions: 10 } });
  for (let i = 0; i < 9; i++) expect(await raw().connect()).toBeDefined();
  expect(await raw().connect()).toBeUndefined();
  const tree = await attachEmbeddedTree({ folder: bench.folder, clock: systemClock, random: systemRandom });
  await tree.close();
});

test("many who read slowly fill no memory together: the one furthest behind is cut", async () => {
  bench = await startBench({ limits: { maxQueuedBytes: 32 << 20, maxQueuedBytesTotal: 12 << 20 } });
  await bench.tree.create("/big", new Uint8Array(900_000));
  const get: wire.Request = { type: OpCode.getData, path: "/big", watch: false };
  const slow = Array.from({ length: 4 }, () => raw());
  for (const one of slow) {
    await one.connect();
    one.socket.pause();
  }
  for (let xid = 1; xid <= 12; xid++) for (const one of slow) one.request(xid, get);
  await expect.poll(() => bench.server.cuts.get("slow") ?? 0).toBeGreaterThanOrEqual(1);
  const reader = raw();
  await reader.connect();
  for (let xid = 1; xid <= 30; xid++) expect(await reader.ask(xid, get)).toMatchObject({ xid, err: 0 });
});

test("watches on long paths count for what they cost", async () => {
  bench = await startBench({ limits: { maxWatchesPerConnection: 100 } });
  const one = raw();
  await one.connect();
  const far = (name: string): wire.ReadRequest => ({
    type: OpCode.exists,
    path: `/${name.repeat(10_000)}`,
    watch: true,
  });
  for (const name of ["a", "b", "c"]) expect((await one.ask(1, far(name)))?.err).toBe(ErrorCode.noNode);
  expect((await one.ask(2, far("d")))?.err).toBe(ErrorCode.quotaExceeded);
  expect((await one.ask(3, { type: OpCode.removeWatches, path: far("a").path, watcherType: 3 }))?.err).toBe(
    0,
  );
  expect((await one.ask(4, far("d")))?.err).toBe(ErrorCode.noNode);
});

/** Requests of every shape that the server knows, to be bent. */
const SHAPES: readonly wire.Request[] = [
  { type: OpCode.create, path: "/f", data: new Uint8Array(9), acl, flags: 3 },
  { type: OpCode.create2, path: "/f-", data: new Uint8Array(3), acl, flags: 2 },
  { type: OpCode.setData, path: "/", data: new Uint8Array(4), version: -1 },
  { type: OpCode.delete, path: "/f", version: 0 },
  { type: OpCode.exists, path: "/f", watch: true },
  { type: OpCode.getChildren2, path: "/", watch: true },
  { type: OpCode.addWatch, path: "/", mode: 1 },
  { type: OpCode.removeWatches, path: "/", watcherType: 3 },
  {
    type: OpCode.setWatches2,
    relativeZxid: 0n,
    dataWatches: ["/f", "/g"],
    existWatches: ["/h"],
    childWatches: ["/"],
    persistentWatches: ["/"],
    persistentRecursiveWatches: ["/f"],
  },
  {
    type: OpCode.multi,
    ops: [
      { type: OpCode.check, path: "/", version: 0 },
      { type: OpCode.create, path: "/m-", data: new Uint8Array(1), acl, flags: 2 },
      { type: OpCode.delete, path: "/f", version: -1 },
    ],
  },
  { type: OpCode.auth, scheme: "digest", auth: new Uint8Array(5) },
  { type: OpCode.getEphemerals, path: "/" },
];

test("requests bent in any byte cost at most their own connection, and change nothing by half", async () => {
  bench = await startBench({ limits: { maxConnections: 2_000 } });
  const witness = raw();
  await witness.connect();
  const bend = fc.record({
    shape: fc.constantFrom(...SHAPES),
    at: fc.nat(200),
    value: fc.constantFrom(0, 1, 0x7f, 0x80, 0xff),
    cut: fc.option(fc.nat(60)),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(bend, { minLength: 1, maxLength: 12 }), async (bends) => {
      const one = raw();
      await one.connect();
      for (const [xid, { shape, at, value, cut }] of bends.entries()) {
        const bytes = requestFrame(xid + 1, shape);
        // The length of the frame stays true now and then, so that the damage reaches deeper.
        bytes[at < 100 ? 8 + (at % (bytes.length - 8)) : at % bytes.length] = value;
        one.socket.write(cut === null ? bytes : bytes.subarray(0, Math.max(4, bytes.length - cut)));
      }
      one.socket.end();
      await one.closed;
      expect(await witness.ask(-2, ping)).toMatchObject({ xid: -2, err: 0 });
    }),
    { numRuns: 150 },
  );
  expect(bench.server.cuts.get("error")).toBeUndefined();
  // All that is kept can be read back: every row has its parent, every count is right.
  const before = await picture();
  await bench.restart();
  expect(await picture()).toEqual(before);
});

/** Everything in the tree that no session owns. */
async function picture(path = "/"): Promise<string[]> {
  const stat = await bench.tree.stat(path);
  if (stat === undefined || stat.ephemeralOwner !== 0n) return [];
  const names = await bench.tree.children(path);
  expect(stat.numChildren).toBe(names.length);
  const below = await Promise.all(
    [...names].sort().map((name) => picture(path === "/" ? `/${name}` : `${path}/${name}`)),
  );
  return [`${path} ${stat.version} ${stat.mzxid} ${stat.dataLength}`, ...below.flat()];
}
