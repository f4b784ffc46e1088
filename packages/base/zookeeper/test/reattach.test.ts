import { expect, test } from "vitest";
import { Aborted, wire, ZooKeeper } from "../src/index.ts";
import { nextXid } from "../src/session/channel.ts";
import { FakeServer, ManualClock, settle } from "./fake-server.ts";

const { OpCode, ErrorCode } = wire;

test("the numbers of operations begin anew after the last one", () => {
  expect([nextXid(0), nextXid(0x7ffffffe), nextXid(0x7fffffff)]).toEqual([1, 0x7fffffff, 1]);
});

test("many watches below a long chroot are set again in parts that a server takes, each of them once", async () => {
  const chroot = `/${"x".repeat(300)}`;
  const maxRequestBytes = 20_000;
  const clock = new ManualClock();
  const server = new FakeServer();
  const zk = new ZooKeeper(`a:1${chroot}`, { clock, connector: server, maxRequestBytes, reconnectBaseMs: 1 });
  await zk.connect();
  const wanted: string[] = [];
  for (let i = 0; i < 500; i++) {
    wanted.push(`${chroot}/w${i}`);
    void zk.exists(`/w${i}`, { watch: () => undefined });
  }
  await settle();
  for (const { xid } of server.received.splice(0)) {
    server.frame((w) => wire.replyHeader.write(w, { xid, zxid: 5n, err: ErrorCode.noNode }));
  }
  const watch = zk.addWatch("/all", "persistent-recursive", () => undefined);
  await settle();
  server.frame((w) => {
    wire.replyHeader.write(w, { xid: server.last(OpCode.addWatch).xid, zxid: 5n, err: 0 });
    wire.writeResponse(w, OpCode.addWatch, { err: 0 });
  });
  await watch;
  server.received.length = 0;
  server.cut();
  const later = zk.exists("/after");
  await clock.pass(100);

  const parts = server.received.filter(({ type }) => type === OpCode.setWatches2);
  expect(parts.length).toBeGreaterThan(10);
  const requests = parts.map(({ request }) => request as wire.SetWatchesRequest);
  for (const request of requests) {
    const writer = new wire.JuteWriter();
    wire.writeRequest(writer, request);
    expect(writer.written().length).toBeLessThan(maxRequestBytes);
    expect(request.relativeZxid).toBe(5n);
  }
  expect(requests.flatMap(({ existWatches }) => existWatches)).toEqual(wanted);
  expect(requests.flatMap(({ persistentRecursiveWatches }) => persistentRecursiveWatches)).toEqual([
    `${chroot}/all`,
  ]);
  // Before anything else is asked.
  expect(server.received.findIndex(({ type }) => type === OpCode.exists)).toBe(parts.length);
  server.frame((w) =>
    wire.replyHeader.write(w, { xid: server.last(OpCode.exists).xid, zxid: 6n, err: ErrorCode.noNode }),
  );
  await settle();
  expect(await later).toBeUndefined();
});

test("a watch that was given up before the server's answer is removed there, unless another watcher has it", async () => {
  const clock = new ManualClock();
  const server = new FakeServer();
  const zk = new ZooKeeper("a:1", { clock, connector: server });
  await zk.connect();
  const given = new AbortController();
  const add = (signal?: AbortSignal) =>
    zk.addWatch("/a", "persistent", () => undefined, signal === undefined ? {} : { signal });
  const first = add(given.signal).catch((error: unknown) => error);
  await settle();
  given.abort();
  expect(await first).toBeInstanceOf(Aborted);
  await settle();
  expect(server.received.map(({ type }) => type)).toEqual([OpCode.addWatch, OpCode.removeWatches]);

  server.received.length = 0;
  const again = new AbortController();
  const second = add(again.signal).catch((error: unknown) => error);
  void add().catch(() => undefined);
  await settle();
  again.abort();
  expect(await second).toBeInstanceOf(Aborted);
  await settle();
  expect(server.received.map(({ type }) => type)).toEqual([OpCode.addWatch, OpCode.addWatch]);
});
