import { type Driver, DriverError } from "@nodeyard/driver";
import { createFakeDriver, FakeCloud, fakeConfig, INSTANT } from "@nodeyard/driver-fake";
import { decodeRequest, paths } from "@nodeyard/model";
import { type Clock, systemClock, systemRandom } from "@nodeyard/runtime";
import { Counters, memoryJournal, memoryLog } from "@nodeyard/telemetry";
import { connectZooKeeperTree, type Tree } from "@nodeyard/tree";
import { describe, expect, test } from "vitest";
import { requireZooKeeper, startProxy, startZooKeeper } from "../../../../testing/zookeeper/index.ts";
import { Launcher } from "../src/index.ts";
import { ensure, fakeProvider, launcherConfig, until } from "./rig.ts";

/** Resyncs and sweeps come thirty times as often: every 2 s instead of every minute. */
const hasty: Clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic(),
  setTimer: (ms, fn, options) =>
    systemClock.setTimer(options?.background && ms >= 40_000 ? ms / 30 : ms, fn, options),
};

function startLauncher(tree: Tree): Promise<Launcher> {
  const cloud = new FakeCloud({ clock: hasty, random: systemRandom, knobs: { ...INSTANT, quota: {} } });
  const driver = createFakeDriver({ config: fakeConfig, cloudOf: () => cloud }) as unknown as Driver;
  return Launcher.start({
    tree,
    clock: hasty,
    random: systemRandom,
    scan: { scan: () => Promise.reject(new DriverError("timeout", "nothing to scan here")) },
    log: memoryLog(),
    journal: memoryJournal(),
    counters: new Counters(),
    identity: { hostname: "host", fqdn: "host.example", version: "0.0.0" },
    driverOf: async () => driver,
    config: launcherConfig([fakeProvider()]),
  });
}

describe.skipIf(requireZooKeeper())(
  "a launcher on ZooKeeper whose watch events are dropped on the wire",
  () => {
    test("serves the request all the same, after one resync at most", async () => {
      await using rig = await start();
      const { proxy, zuul } = rig;
      const state = async (path: string) =>
        decodeRequest(path.slice(path.lastIndexOf("/") + 1), (await zuul.get(path)).data).state;
      const ask = async () => {
        const data = { state: "requested", state_time: 1, node_types: ["small"], requestor: "zuul" };
        const request = Buffer.from(JSON.stringify(data));
        return (await zuul.create(`${paths.requests}/100-`, request, { sequential: true })).path;
      };
      const reported = await ask();
      await until("the first is fulfilled", async () => (await state(reported)) === "fulfilled");
      proxy.steal(true);
      const missed = await ask();
      await until("the second is fulfilled", async () => (await state(missed)) === "fulfilled");
      expect(proxy.dropped).toBeGreaterThan(0);
    });
  },
);

async function start() {
  const server = await startZooKeeper();
  const proxy = await startProxy({ host: "127.0.0.1", port: server.port }, { frames: true });
  const connect = (port: number) =>
    connectZooKeeperTree({
      servers: `127.0.0.1:${port}`,
      clock: hasty,
      random: systemRandom,
      sessionTimeoutMs: 20_000,
    });
  const zuul = await connect(server.port);
  await ensure(zuul, paths.requests);
  const tree = await connect(proxy.port);
  const launcher = await startLauncher(tree);
  return {
    proxy,
    zuul,
    async [Symbol.asyncDispose]() {
      await launcher.close(500);
      await tree.close();
      await zuul.close();
      await proxy.close();
      await server.stop();
    },
  };
}
