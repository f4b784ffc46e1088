import { wire } from "@nodeyard/zookeeper";
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import { fourLetter, mntr } from "../../../../../testing/zookeeper/four-letter.ts";
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

const exists = (path: string, watch = false): wire.Request => ({ type: OpCode.exists, path, watch });
const ping: wire.Request = { type: OpCode.ping };

test("one connection too many is closed at once, and there is room again when one leaves", async () => {
  bench = await startBench({ limits: { maxConnections: 2 } });
  const first = raw();
  expect(await first.connect()).toBeDefined();
  expect(await raw().connect()).toBeDefined();
  expect(await raw().connect()).toBeUndefined();
  first.destroy();
  await first.closed;
  await expect.poll(() => raw().connect()).toBeDefined();
  expect(bench.server.cuts.get("connections")).toBeGreaterThanOrEqual(1);
});

test("one session too many is refused; taking one up again is not", async () => {
  bench = await startBench({ limits: { maxSessions: 1 } });
  const first = raw();
  const mine = (await first.connect())!;
  expect(await raw().connect()).toBeUndefined();
  expect(bench.server.cuts.get("sessions")).toBe(1);
  const again = await raw().connect({ sessionId: mine.sessionId, passwd: mine.passwd });
  expect(again).toMatchObject({ sessionId: mine.sessionId, timeOut: mine.timeOut });
  // The session moved: the old connection is cut.
  await first.closed;
  expect(bench.server.cuts.get("moved")).toBe(1);
});

test("a session is not given to a client without its password, nor does it suffer", async () => {
  bench = await startBench();
  const first = raw();
  const mine = (await first.connect())!;
  const intruder = raw();
  const answer = await intruder.connect({ sessionId: mine.sessionId, passwd: new Uint8Array(16) });
  expect(answer).toMatchObject({ timeOut: 0, sessionId: 0n });
  await intruder.closed;
  // The sessions of roles inside the process are nobody's to take.
  const inside = await raw().connect({ sessionId: bench.tree.session().id, passwd: mine.passwd });
  expect(inside?.timeOut).toBe(0);
  expect(await first.ask(-2, ping)).toMatchObject({ xid: -2, err: 0 });
});

test("one watch too many is refused, and none too few remain", async () => {
  bench = await startBench({ limits: { maxWatchesPerConnection: 2 } });
  const one = raw();
  await one.connect();
  expect((await one.ask(1, exists("/a", true)))?.err).toBe(ErrorCode.noNode);
  expect((await one.ask(2, exists("/b", true)))?.err).toBe(ErrorCode.noNode);
  expect((await one.ask(3, exists("/a", true)))?.err).toBe(ErrorCode.noNode);
  expect((await one.ask(4, exists("/c", true)))?.err).toBe(ErrorCode.quotaExceeded);
  expect((await one.ask(5, { type: OpCode.addWatch, path: "/", mode: 1 }))?.err).toBe(
    ErrorCode.quotaExceeded,
  );
  await bench.tree.create("/a");
  expect((await one.header())?.xid).toBe(-1);
  expect((await one.ask(6, exists("/c", true)))?.err).toBe(ErrorCode.noNode);
});

test("a frame too long cuts the connection", async () => {
  bench = await startBench({ limits: { maxFrameBytes: 1_000 } });
  const one = raw();
  await one.connect();
  const acl = [{ perms: 31, scheme: "world", id: "anyone" }];
  const create = (size: number): wire.Request => ({
    type: OpCode.create,
    path: "/a",
    data: new Uint8Array(size),
    acl,
    flags: 0,
  });
  expect((await one.ask(1, create(900)))?.err).toBe(0);
  expect(await one.ask(2, create(1_000))).toBeUndefined();
  expect(bench.server.cuts.get("frame")).toBe(1);
});

test("a slow reader is cut, not buffered for ever", async () => {
  bench = await startBench({ limits: { maxQueuedBytes: 1 << 20 } });
  // Long, so that few events are more than the system's own buffers take.
  const path = `/${"slow".repeat(500)}`;
  const one = raw();
  await one.connect();
  await one.ask(1, { type: OpCode.addWatch, path, mode: 0 });
  one.socket.pause();
  // Events are the bytes that no pause of its intake can hold back.
  await bench.tree.create(path);
  const cut = () => bench.server.cuts.get("slow") ?? 0;
  const busy = new Uint8Array(1);
  for (let i = 0; i < 400 && cut() === 0; i++) {
    await Promise.all(Array.from({ length: 500 }, () => bench.tree.set(path, busy)));
  }
  expect(cut()).toBe(1);
});

test("a client that asks for much and reads late gets all of it, since its intake is paused", async () => {
  bench = await startBench({ limits: { maxQueuedBytes: 8 << 20, maxOutstanding: 8 } });
  await bench.tree.create("/big", new Uint8Array(500_000));
  const one = raw();
  await one.connect();
  one.socket.pause();
  for (let xid = 1; xid <= 60; xid++) one.request(xid, { type: OpCode.getData, path: "/big", watch: false });
  one.socket.resume();
  for (let xid = 1; xid <= 60; xid++) expect((await one.header())?.xid).toBe(xid);
  expect(bench.server.cuts.size).toBe(0);
});

test("a connection that never asks for a session is cut", async () => {
  bench = await startBench({ limits: { handshakeMs: 50 } });
  const one = raw();
  await one.closed;
  expect(bench.server.cuts.get("handshake")).toBe(1);
});

test("session timeouts are clamped", async () => {
  bench = await startBench({ limits: { minSessionTimeoutMs: 2_000, maxSessionTimeoutMs: 5_000 } });
  expect((await raw().connect({ timeOut: 1 }))?.timeOut).toBe(2_000);
  expect((await raw().connect({ timeOut: 1 << 30 }))?.timeOut).toBe(5_000);
});

test("a client that has seen later changes is turned away", async () => {
  bench = await startBench();
  expect(await raw().connect({ lastZxidSeen: 1n << 60n })).toBeUndefined();
});

test("an unknown operation is answered with unimplemented, and the connection goes on", async () => {
  bench = await startBench();
  const one = raw();
  await one.connect();
  one.send((writer) => wire.requestHeader.write(writer, { xid: 7, type: 99 }));
  expect(await one.header()).toMatchObject({ xid: 7, err: ErrorCode.unimplemented });
  expect(await one.ask(-2, ping)).toMatchObject({ xid: -2, err: 0 });
});

test("four-letter words", async () => {
  bench = await startBench();
  const port = bench.server.port ?? 0;
  expect(await fourLetter(port, "ruok")).toBe("imok");
  expect(await fourLetter(port, "srvr")).toMatch(/Mode: standalone/);
  expect(await fourLetter(port, "dump")).toBe("dump is not executed because it is not in the whitelist.\n");
  expect(await mntr(port)).toMatchObject({ zk_server_state: "standalone", zk_znode_count: "1" });
});

test("a fault in one request costs one connection", async () => {
  bench = await startBench();
  const one = raw();
  const other = raw();
  await one.connect();
  await other.connect();
  // A multi that ends in the middle.
  one.send((writer) => {
    wire.requestHeader.write(writer, { xid: 1, type: OpCode.multi });
    writer.int(OpCode.create);
  });
  await one.closed;
  expect(bench.server.cuts.get("frame")).toBe(1);
  expect(await other.ask(-2, ping)).toMatchObject({ err: 0 });
});

test("whatever bytes arrive, the server stays up", async () => {
  bench = await startBench({ limits: { maxConnections: 10_000 } });
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 80 }), fc.boolean(), async (bytes, attached) => {
      const one = raw();
      if (attached) await one.connect();
      one.send((writer) => {
        for (const byte of bytes) writer.bool(byte % 2 === 1);
        writer.buffer(bytes);
      });
      one.socket.end(bytes);
      await one.closed;
    }),
    { numRuns: 60 },
  );
  const one = raw();
  await one.connect();
  expect(await one.ask(-2, ping)).toMatchObject({ err: 0 });
});
