import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Direction,
  requireZooKeeper,
  startProxy,
  type TcpProxy,
} from "../../../../testing/zookeeper/index.ts";
import { ConnectionLost, type ZooKeeper } from "../src/index.ts";
import { client, serverHere, until } from "./support.ts";

/** Frames with their length: create2 of "/cut-0000" with 8 bytes, and its answer. */
const REQUEST_BYTES = 4 + 8 + (4 + 9) + (4 + 8) + (4 + 4 + 9 + 10) + 4;
const REPLY_BYTES = 4 + 16 + (4 + 9) + 68;

describe.skipIf(requireZooKeeper())("a connection that is cut at every byte of a frame", () => {
  const server = serverHere();
  let proxy: TcpProxy;
  let zk: ZooKeeper;
  let shaky: ZooKeeper;

  beforeAll(async () => {
    proxy = await startProxy(server);
    zk = await client(server);
    shaky = await client(proxy, { reconnectBaseMs: 1, reconnectMaxMs: 1 });
  });
  afterAll(async () => {
    await proxy?.close();
  });

  let number = 0;
  /** What became of a create whose frame, or whose reply, was cut after `count` bytes: as told, and in truth. */
  async function cutAt(direction: Direction, count: number): Promise<{ reported: string; exists: boolean }> {
    const path = `/cut-${String(++number).padStart(4, "0")}`;
    await shaky.drain();
    await until("connected", () => shaky.session.state === "connected");
    const connections = shaky.counters.connections;
    const cut = proxy.cutAfter(direction, count);
    const reported = shaky.create(path, Buffer.from("8 bytes!")).then(
      () => "done",
      (error: unknown) => {
        expect(error).toBeInstanceOf(ConnectionLost);
        return (error as ConnectionLost).outcome;
      },
    );
    // A cut behind the frame needs one more byte to happen.
    if (count === (direction === "to-server" ? REQUEST_BYTES : REPLY_BYTES))
      void shaky.exists("/").catch(() => undefined);
    await cut;
    const outcome = await reported;
    await until("reconnected", () => shaky.counters.connections > connections);
    expect(shaky.session.epoch).toBe(1);
    await zk.sync("/");
    return { reported: outcome, exists: (await zk.exists(path)) !== undefined };
  }

  test("requests: nothing happened, and nothing is claimed", async () => {
    for (let count = 0; count < REQUEST_BYTES; count++) {
      expect({ count, ...(await cutAt("to-server", count)) }).toEqual({
        count,
        reported: "unknown",
        exists: false,
      });
    }
  });

  test("requests: the last byte makes it happen", async () => {
    expect(await cutAt("to-server", REQUEST_BYTES)).toMatchObject({ exists: true });
  });

  test("replies: the write happened, but its result is lost", async () => {
    for (let count = 0; count < REPLY_BYTES; count++) {
      expect({ count, ...(await cutAt("to-client", count)) }).toEqual({
        count,
        reported: "unknown",
        exists: true,
      });
    }
  });

  test("replies: the last byte tells", async () => {
    expect(await cutAt("to-client", REPLY_BYTES)).toEqual({ reported: "done", exists: true });
  });

  test("the handshake: a new client gets in all the same", async () => {
    for (const [direction, bytes] of [
      ["to-server", 45 + 4],
      ["to-client", 37 + 4],
    ] as const) {
      for (let count = 0; count < bytes; count++) {
        const cut = proxy.cutAfter(direction, count);
        const fresh = await client(proxy, { reconnectBaseMs: 1, reconnectMaxMs: 1 });
        await cut;
        expect(await fresh.exists("/")).toBeDefined();
        await fresh.close();
      }
    }
  });
});
