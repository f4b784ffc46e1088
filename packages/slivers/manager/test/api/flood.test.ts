import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VirtualClock } from "@nodeyard/runtime";
import { SliverBusyError, SliverClient, unixTransport } from "@nodeyard/sliver-protocol";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CallBudget } from "../../src/api/call-budget.ts";
import type { AuditEntry } from "../../src/api/dispatch.ts";
import { AccountSockets } from "../../src/api/edge/account-sockets.ts";
import { accountServer, type Intake, listenTcp } from "../../src/api/edge/http-server.ts";
import type { Reader } from "../../src/api/edge/reader/reader.ts";
import type { Caller } from "../../src/core/permit.ts";
import { ROOT, readerIn, sliver } from "./rig.ts";

const uid = process.getuid!();
const ada = sliver("ada");
const bob = sliver("bob");
const BURST = 100;
/** Milliseconds after which refusals are summed. */
const PERIOD = 10_000;

describe("what slivers may ask over their sockets", () => {
  let folder: string;
  let clock: VirtualClock;
  let audit: AuditEntry[];
  /** Bodies that somebody read, by account. */
  let read: string[];
  let budget: CallBudget;
  let sockets: AccountSockets;
  let applied: Promise<void>;
  let reader: Reader;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-flood-"));
    chmodSync(folder, 0o711);
    clock = new VirtualClock();
    audit = [];
    read = [];
    applied = Promise.resolve();
    const onFlood = () => void apply();
    budget = new CallBudget({
      clock,
      audit: (entry) => void audit.push(entry),
      onFlood,
      onFailure: () => undefined,
    });
    reader = readerIn(join(folder, "reader"));
    sockets = new AccountSockets(join(folder, "run"), (caller) =>
      accountServer({ handler, budget, reader }, caller),
    );
    await sockets.prepare();
    await apply();
  });
  afterEach(async () => {
    await applied;
    await sockets.close();
    await reader.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const handler = async (_: unknown, { account }: Caller) => {
    read.push(account);
    return { status: 200, type: "text/plain", body: "done" };
  };
  const apply = () => {
    const calm = [ada, bob, ROOT].filter((caller) => !budget.floods(caller));
    applied = applied.then(() => sockets.apply(calm.map((caller) => ({ caller, uid }))));
    return applied;
  };
  const path = ({ account }: Caller) => join(folder, "run", account, "api.sock");
  /** Status of the answer; 0: the connection ended without one. */
  const post = (caller: Caller, size = 0, head = `content-length: ${size}`) =>
    answerOf(
      connect(path(caller)),
      `POST /json HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${head}\r\n\r\n${"x".repeat(size)}`,
    );

  test("each connection with its call counts once, malformed or not, and the next one is refused unread", async () => {
    for (let call = 0; call < BURST; call++)
      expect(await (call % 2 === 0 ? post(ada) : answerOf(connect(path(ada)), "no HTTP\r\n\r\n"))).toBe(
        call % 2 === 0 ? 200 : 400,
      );
    expect(await post(ada)).toBe(429);
    expect(read).toHaveLength(BURST / 2);
    expect(await post(bob)).toBe(200);
    expect(await post(ROOT)).toBe(200);
    await clock.advance(1000);
    for (let call = 0; call < 10; call++) expect(await post(ada)).toBe(200);
    expect(await post(ada)).toBe(429);
  });

  test("calls on one connection count, too, and bytes before they are read", async () => {
    const one = `POST /json HTTP/1.1\r\nhost: x\r\n\r\n`;
    const socket = connect(path(ada));
    await answerOf(socket, one.repeat(BURST + 20));
    expect(read).toHaveLength(BURST);
    // 128 KiB are eight calls more.
    for (let call = 0; call < Math.floor(BURST / 9); call++) expect(await post(bob, 131_072)).toBe(200);
    expect(await post(bob, 131_072)).toBe(429);
    expect(read).toHaveLength(BURST + Math.floor(BURST / 9));
  });

  test("a change costs a sliver as much as twenty calls, so that it makes one every two seconds in the long run", async () => {
    const body = JSON.stringify({ method: "SetLoans", params: ["ada", []] });
    const change = (caller: Caller) =>
      answerOf(
        connect(path(caller)),
        `POST /json HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
    const all: number[] = [];
    for (let call = 0; call < 7; call++) all.push(await change(ada));
    expect(all).toEqual([200, 200, 200, 200, 429, 429, 429]);
    const client = new SliverClient(unixTransport(path(ada)));
    await expect(client.call("SetLoans", ["ada", []], new AbortController().signal)).rejects.toThrow(
      SliverBusyError,
    );
    for (let call = 0; call < 7; call++) expect(await change(ROOT)).toBe(200);
    await clock.advance(2_000);
    expect([await change(ada), await change(ada)]).toEqual([200, 429]);
    expect(await change(bob)).toBe(200);
  });

  test("a sliver has eight connections, and its use of them leaves those of others alone", async () => {
    const idle = Array.from({ length: 8 }, () => connect(path(ada)));
    await Promise.all(idle.map((socket) => new Promise((resolve) => socket.once("connect", resolve))));
    expect(await post(ada)).toBe(0);
    expect(await post(bob)).toBe(200);
    for (const socket of idle) socket.destroy();
  });

  test("a flood ends the socket until the sum is one line of the audit log", async () => {
    for (let call = 0; call < BURST; call++) await post(ada);
    // Connections that ask nothing count as well.
    let refused = 0;
    while (existsSync(path(ada)) && refused < 10 * BURST) {
      await answerOf(connect(path(ada)), "");
      refused += 1;
      await applied;
    }
    expect(refused).toBe(BURST);
    expect(await post(bob)).toBe(200);
    expect(audit).toEqual([]);
    await clock.advance(PERIOD);
    await applied;
    expect(audit).toMatchObject([{ account: "ada", role: "sliver", verdict: "refused", count: BURST }]);
    expect(await post(ada)).toBe(200);
    await clock.advance(PERIOD);
    expect(audit).toHaveLength(1);
  });

  test("sums that cannot be written are reported, and do not block later calls", async () => {
    const said: string[] = [];
    const full = () => {
      throw new Error("ENOSPC");
    };
    let calls = 0;
    const other = new CallBudget({
      clock,
      audit: full,
      onFlood: () => void calls++,
      onFailure: (line) => said.push(line),
    });
    for (let call = 0; call < BURST; call++) other.refuse(ada);
    for (let call = 0; call < BURST; call++) other.refuse(ROOT);
    expect(other.floods(ROOT)).toBe(false);
    expect(other.floods(ada)).toBe(true);
    expect(other.floods({ ...ada, role: "anonymous" })).toBe(false);
    await clock.advance(PERIOD);
    expect(other.floods(ada)).toBe(false);
    expect(calls).toBe(2);
    expect(said).toEqual([expect.stringMatching(/not in the audit log: ENOSPC/)]);
  });

  test("over TCP, clients that only connect do not keep out clients with a token", async () => {
    const intake: Intake = { handler, budget, reader };
    const server = await listenTcp(intake, "127.0.0.1", 0, []);
    const { port } = server.address() as { port: number };
    const idle: Socket[] = [];
    for (let at = 0; at < 40; at++) {
      const socket = connect(port, "127.0.0.1").on("error", () => undefined);
      idle.push(socket);
      await new Promise((resolve) => socket.once("connect", resolve));
    }
    expect(
      await answerOf(connect(port, "127.0.0.1"), "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
    ).toBe(200);
    for (const socket of idle) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
});

/** Sends a request and resolves to the first status that comes back; 0: none came. */
function answerOf(socket: Socket, text: string): Promise<number> {
  return new Promise((resolve) => {
    let said = "";
    socket.setEncoding("latin1").on("data", (part: string) => {
      said += part;
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(Number(/^HTTP\/1\.1 (\d{3})/.exec(said)?.[1] ?? 0)));
    if (text === "") socket.end();
    else socket.write(text);
  });
}
