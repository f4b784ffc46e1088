import { systemClock, systemRandom } from "@nodeyard/runtime";
import { wire } from "@nodeyard/zookeeper";
import { expect, test } from "vitest";
import { TreeCore } from "../../src/embedded/core.ts";
import type { Store } from "../../src/embedded/store.ts";
import { startTreeServer } from "../../src/server/server.ts";
import { RawClient } from "./raw-client.ts";

test("when the store fails no operation is answered: every connection is cut, and no new one is accepted", async () => {
  let broken = false;
  const store: Store = {
    commit: async () => {
      if (broken) throw new Error("no space left on device");
    },
    backup: async () => undefined,
    close: async () => undefined,
  };
  const core = new TreeCore(
    store,
    { zxid: 0n, boot: 1, znodes: [], sessions: [] },
    systemClock,
    systemRandom,
  );
  await using server = await startTreeServer({
    core,
    clock: systemClock,
    socket: false,
    tcp: { host: "127.0.0.1", port: 0 },
  });
  const port = server.port ?? 0;
  const writer = new RawClient(port);
  const idle = new RawClient(port);
  const acl = [{ perms: 31, scheme: "world", id: "anyone" }];
  const create = (path: string): wire.Request => ({
    type: wire.OpCode.create,
    path,
    data: new Uint8Array(1),
    acl,
    flags: 0,
  });
  await writer.connect();
  await idle.connect();
  expect((await writer.ask(1, create("/before")))?.err).toBe(0);
  broken = true;
  expect(await writer.ask(2, create("/lost"))).toBeUndefined();
  await idle.closed;
  expect(await new RawClient(port).connect()).toBeUndefined();
  expect(server.cuts.get("store")).toBe(3);
});
