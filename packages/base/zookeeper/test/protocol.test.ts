import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  ConnectionLost,
  NoNode,
  ProtocolError,
  wire,
  ZooKeeper,
  type ZooKeeperOptions,
} from "../src/index.ts";
import { FakeServer, ManualClock, reply, STAT, settle } from "./fake-server.ts";
import { errorOf, states } from "./support.ts";

const { OpCode } = wire;

async function start(options: ZooKeeperOptions = {}, hosts = "a:1") {
  const clock = new ManualClock();
  const server = new FakeServer();
  const zk = new ZooKeeper(hosts, {
    clock,
    connector: server,
    random: { float: () => 0.5, uuid: () => "00000000-0000-4000-8000-000000000000" },
    ...options,
  });
  return { clock, server, zk, changes: states(zk) };
}

async function started(options: ZooKeeperOptions = {}) {
  const made = await start(options);
  await made.zk.connect();
  return made;
}

describe("the wire", () => {
  test("events and replies of one packet are handed out in order, each before the next is looked at", async () => {
    const { zk, server } = await started();
    const order: string[] = [];
    zk.onWatchEvent(({ type, path }) => order.push(`${type} ${path}`));
    const read = { type: OpCode.getData, path: "/a", watch: true } as const;
    zk.submit(read, (_, response) => order.push(`reply ${response?.data}`));
    zk.submit(read, (_, response) => order.push(`reply ${response?.data}`));
    await settle();
    const [first, second] = server.received;
    const event = (type: number) => (w: wire.JuteWriter) => {
      wire.replyHeader.write(w, { xid: -1, zxid: -1n, err: 0 });
      wire.watcherEvent.write(w, { type, state: 3, path: "/a" });
    };
    server.frame(
      event(3),
      reply(first!.xid, OpCode.getData, { data: Buffer.from("1"), stat: STAT }),
      event(2),
      reply(second!.xid, OpCode.getData, { data: Buffer.from("2"), stat: STAT }),
    );
    await settle();
    expect(order).toEqual(["data /a", "reply 1", "deleted /a", "reply 2"]);
  });

  test("operations of one turn leave in one write, in order", async () => {
    const { zk, server } = await started();
    for (const path of ["/a", "/b", "/c"]) void zk.exists(path).catch(() => undefined);
    expect(server.received).toEqual([]);
    await settle();
    expect(server.received.map(({ xid, request }) => [xid, (request as { path: string }).path])).toEqual([
      [1, "/a"],
      [2, "/b"],
      [3, "/c"],
    ]);
  });

  test("a reply out of turn ends the connection, and the operation's outcome is unknown", async () => {
    const { zk, server, changes } = await started();
    const lost = errorOf(zk.set("/a", Buffer.alloc(0)));
    await settle();
    server.frame(reply(99, OpCode.setData, { stat: STAT }));
    const error = await lost;
    expect(error).toBeInstanceOf(ConnectionLost);
    expect(error).toMatchObject({ outcome: "unknown", cause: { code: "zookeeper.protocol" } });
    expect(changes[1]).toMatchObject({ state: "suspended" });
  });

  test("a frame beyond the limit and a reply that is cut short end the connection", async () => {
    for (const answer of ["long", "short"]) {
      const { zk, server } = await started({ maxResponseBytes: 1_000 });
      const lost = errorOf(zk.get("/a"));
      await settle();
      if (answer === "long") server.raw(Buffer.from([0x7f, 0, 0, 0]));
      else server.frame((w) => wire.replyHeader.write(w, { xid: server.received[0]!.xid, zxid: 1n, err: 0 }));
      expect(((await lost) as Error).cause).toBeInstanceOf(ProtocolError);
    }
  });

  test("the answer to an operation that was given up is dropped, and the next operation gets its own", async () => {
    const { zk, server, clock } = await started();
    const late = errorOf(zk.get("/a", { deadlineMs: 100 }));
    const next = zk.get("/b");
    await clock.pass(101);
    expect(await late).toMatchObject({ code: "zookeeper.deadline_exceeded" });
    server.frame(
      ...server.received.map(({ xid, request }) =>
        reply(xid, OpCode.getData, { data: Buffer.from((request as { path: string }).path), stat: STAT }),
      ),
    );
    expect((await next).data.toString()).toBe("/b");
  });

  test("an error of the server becomes its class, and exists makes nothing of it", async () => {
    const { zk, server } = await started();
    const failed = errorOf(zk.get("/a"));
    const exists = zk.exists("/a");
    await settle();
    server.frame(
      ...server.received.map(
        ({ xid }) =>
          (w: wire.JuteWriter) =>
            wire.replyHeader.write(w, { xid, zxid: 5n, err: -101 }),
      ),
    );
    expect(await failed).toBeInstanceOf(NoNode);
    expect(await exists).toBeUndefined();
    expect(zk.lastZxid).toBe(5n);
  });
});

describe("a server that talks nonsense", () => {
  test("ends connections, but every operation ends too, and nothing else is thrown", async () => {
    const header = fc.record({
      xid: fc.integer({ min: -10, max: 4 }),
      err: fc.constantFrom(0, -4, -101, -999),
    });
    const frame = fc.tuple(header, fc.uint8Array({ maxLength: 120 }));
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { minLength: 1, maxLength: 6 }), async (frames) => {
        const { zk, server } = await started();
        const noise = (xid: number, err: number, body: Uint8Array) => (w: wire.JuteWriter) => {
          wire.replyHeader.write(w, { xid, zxid: 1n, err });
          for (const byte of body) w.bool(byte > 127);
        };
        const ops = [
          zk.get("/a"),
          zk.children("/a"),
          zk.multi([{ op: "check", path: "/a" }]),
          zk.addWatch("/a", "persistent", () => undefined),
        ];
        const ends = Promise.allSettled(ops);
        await settle();
        server.frame(...frames.map(([{ xid, err }, body]) => noise(xid, err, body)));
        await settle();
        const closed = zk.close();
        server.cut();
        await closed;
        expect((await ends).length).toBe(4);
      }),
      { numRuns: 200 },
    );
  });
});

describe("time", () => {
  test("pings come after a third of the timeout without a packet; trust counts from when they were sent", async () => {
    const { zk, server, clock } = await started();
    expect(zk.session).toMatchObject({ timeoutMs: 9_000, lastAnsweredSentAt: 0 });
    await clock.pass(2_999);
    expect(server.received).toEqual([]);
    await clock.pass(1);
    const ping = server.last(OpCode.ping);
    expect(ping.xid).toBe(-2);
    await clock.pass(500);
    expect(zk.session.lastAnsweredSentAt).toBe(0);
    server.frame((w) => wire.replyHeader.write(w, { xid: -2, zxid: 1n, err: 0 }));
    await settle();
    expect(zk.session.lastAnsweredSentAt).toBe(3_000);
  });

  test("a server that tells much on its own delays no ping: trust never runs out on a sound connection", async () => {
    const { server, clock, zk } = await started();
    const event = { type: wire.EventType.nodeCreated, state: 3, path: "/busy" };
    let answered = 0;
    for (let ms = 0; ms < 40_000; ms += 100) {
      await clock.pass(100);
      for (const { xid } of server.received.slice(answered)) {
        server.frame((w) => wire.replyHeader.write(w, { xid, zxid: 1n, err: 0 }));
      }
      answered = server.received.length;
      server.frame((w) => {
        wire.replyHeader.write(w, { xid: wire.Xid.event, zxid: -1n, err: 0 });
        wire.watcherEvent.write(w, event);
      });
      await clock.pass(0);
      expect(zk.session.lastAnsweredSentAt + 6_000).toBeGreaterThan(clock.monotonic());
    }
    expect(answered).toBeGreaterThan(10);
  });

  test("a session that was ended early is not trusted for what its last answer would have allowed", async () => {
    const { zk, server, clock, changes } = await started();
    await clock.pass(100);
    expect(zk.session.lastAnsweredSentAt).toBe(0);
    const trusted: number[] = [];
    zk.onStatus(() => trusted.push(zk.session.lastAnsweredSentAt));
    const { welcome } = server;
    server.welcome = (request) => ({
      ...welcome!(request)!,
      timeOut: request.sessionId === 0n ? 9_000 : 0,
      sessionId: request.sessionId === 0n ? 8n : 0n,
    });
    server.cut();
    await clock.pass(1_000);
    expect(changes.slice(-4).map(({ state }) => state)).toEqual([
      "suspended",
      "expired",
      "connecting",
      "connected",
    ]);
    expect(trusted.slice(0, 3)).toEqual([0, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY]);
    expect(trusted[3]).toBeGreaterThanOrEqual(100);
  });

  test("a server that hangs up on the request for a session is named so", async () => {
    const { zk, server, clock } = await start();
    server.welcome = () => {
      queueMicrotask(() => server.cut());
      return undefined as never;
    };
    const connected = zk.connect({ deadlineMs: 300 }).catch((error: unknown) => error);
    await clock.pass(400);
    expect((await connected) as Error).toMatchObject({
      cause: {
        message: expect.stringContaining("a:1: the connection was closed with the request for a session"),
      },
    });
  });

  test("an answer moves trust to when its request was sent, not to when it came", async () => {
    const { zk, server, clock } = await started();
    await clock.pass(1_000);
    const done = zk.get("/a");
    await clock.pass(700);
    server.frame(reply(server.received[0]!.xid, OpCode.getData, { data: Buffer.alloc(0), stat: STAT }));
    await done;
    expect(zk.session.lastAnsweredSentAt).toBe(1_000);
  });

  test("silence for two thirds of the timeout ends the connection", async () => {
    const { zk, server, clock, changes } = await started();
    server.welcome = undefined;
    await clock.pass(5_999);
    expect(zk.session.state).toBe("connected");
    await clock.pass(2);
    expect(changes.map(({ state }) => state).slice(0, 2)).toEqual(["connected", "suspended"]);
    expect(zk.session.lastAnsweredSentAt).toBe(0);
  });

  test("every server is tried in turn; then the delays double up to their limit", async () => {
    const { zk, server, clock } = await start({ reconnectMaxMs: 400 }, "a:1,b:1");
    server.welcome = undefined;
    server.addresses = { a: ["10.0.0.1", "10.0.0.2"], b: [] };
    const known = () => server.endpoints.length;
    void zk.connect().catch(() => undefined);
    await clock.pass(0);
    const times = [clock.monotonic()];
    while (clock.monotonic() < 1_600) {
      const before = known();
      await clock.pass(1);
      if (known() > before) times.push(clock.monotonic());
    }
    // 0.5 is no jitter: rounds at 0, 100, 300, 700, 1,100, 1,500 ms.
    expect(times.length).toBe(6);
    expect(times.map((at, i) => at - (times[i - 1] ?? 0)).slice(1)).toEqual([100, 200, 400, 400, 400]);
    expect(new Set(server.endpoints.map(({ address }) => address))).toEqual(
      new Set(["10.0.0.1", "10.0.0.2"]),
    );
    await zk.close();
  });

  test("a server that takes the connection and says nothing is left after the connect timeout", async () => {
    const { zk, server, clock } = await start({ connectTimeoutMs: 500 }, "a:1,b:1");
    const { welcome } = server;
    server.welcome = () => undefined as never;
    const connecting = zk.connect();
    await clock.pass(400);
    expect(server.endpoints.length).toBe(1);
    server.welcome = welcome;
    await clock.pass(101);
    await connecting;
    expect(server.endpoints.length).toBe(2);
  });
});

describe("deadlines", () => {
  test.each([2 ** 31, 2 ** 53, Number.POSITIVE_INFINITY])(
    "%d ms is a deadline like any other",
    async (deadlineMs) => {
      const timers: number[] = [];
      const clock = new ManualClock();
      const set = clock.setTimer.bind(clock);
      clock.setTimer = (ms, fn) => {
        timers.push(ms);
        return set(ms, fn);
      };
      const { zk, server } = await started({ clock });
      const done = zk.get("/a", { deadlineMs });
      await settle();
      server.frame(reply(1, OpCode.getData, { data: Buffer.alloc(0), stat: STAT }));
      await done;
      expect(Math.max(...timers)).toBeLessThan(2 ** 31);
    },
  );

  test("operations that are given up leave room in the queue for others", async () => {
    const { zk, clock } = await start({ maxQueued: 100 });
    for (let round = 0; round < 5; round++) {
      const ended = Array.from({ length: 90 }, () => errorOf(zk.get("/a", { deadlineMs: 10 })));
      await clock.pass(11);
      for (const error of await Promise.all(ended)) {
        expect(error).toMatchObject({ code: "zookeeper.deadline_exceeded", outcome: "none" });
      }
    }
    expect(zk.queued).toBe(0);
  });
});

describe("servers", () => {
  const readOnly = {
    protocolVersion: 0,
    timeOut: 9_000,
    sessionId: 8n,
    passwd: Buffer.alloc(16),
    readOnly: true,
  };

  test("a read-only server is refused unless asked for, and its session is not taken elsewhere", async () => {
    const { zk, server, clock } = await start({}, "a:1,b:1");
    const { welcome } = server;
    server.welcome = () => readOnly;
    void zk.connect().catch(() => undefined);
    await clock.pass(1);
    expect(zk.session).toMatchObject({ state: "connecting", epoch: 0 });

    // Refused again and again, but without a storm.
    const attempts = server.endpoints.length;
    await clock.pass(1_000);
    expect(server.endpoints.length - attempts).toBeLessThan(10);
    await zk.close();

    const lenient = await started({ allowReadOnly: true, connector: server });
    expect(lenient.zk.session).toMatchObject({ state: "connected", readOnly: true, id: 8n });
    server.welcome = welcome;
    server.cut();
    await lenient.clock.pass(200);
    expect(server.connects.at(-1)).toMatchObject({ sessionId: 0n, readOnly: true });
    expect(lenient.zk.session).toMatchObject({ state: "connected", readOnly: false, id: 7n, epoch: 2 });
    expect(lenient.changes.map(({ state }) => state)).toContain("expired");
  });

  test("a reconnect shows the session's password and the last zxid", async () => {
    const { zk, server, clock } = await started();
    const done = zk.get("/a");
    await settle();
    const answer = reply(
      server.received[0]!.xid,
      OpCode.getData,
      { data: Buffer.alloc(0), stat: STAT },
      0x1_8000_0001n,
    );
    server.frame(answer);
    await done;
    server.cut();
    await clock.pass(200);
    expect(server.connects[1]).toMatchObject({
      sessionId: 7n,
      lastZxidSeen: 0x1_8000_0001n,
      passwd: Buffer.alloc(16, 1),
    });
  });
});
