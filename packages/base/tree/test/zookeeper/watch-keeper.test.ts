import { systemClock, systemRandom } from "@nodeyard/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startProxy, type TcpProxy } from "../../../../../testing/zookeeper/index.ts";
import type { SessionState, Tree } from "../../src/contract.ts";
import { connectZooKeeperTree } from "../../src/zookeeper/index.ts";
import { type Bench, startBench } from "../server/bench.ts";
import { Follower } from "../suite/index.ts";

let bench: Bench;
let proxy: TcpProxy;
let tree: Tree;

beforeEach(async () => {
  bench = await startBench();
  proxy = await startProxy({ host: "127.0.0.1", port: bench.server.port ?? 0 });
  tree = await connectZooKeeperTree({
    servers: `${proxy.host}:${proxy.port}`,
    clock: systemClock,
    random: systemRandom,
    resyncSpreadMs: 0,
  });
  await bench.tree.create("/f");
});

afterEach(async () => {
  await tree.close();
  await proxy.close();
  await bench.close();
});

function become(state: SessionState): Promise<void> {
  return new Promise((resolve) => {
    const stop = tree.onSession((session) => {
      if (session.state !== state) return;
      stop();
      resolve();
    });
  });
}

async function followsOn(follower: Follower): Promise<void> {
  await bench.tree.create("/f/later", new TextEncoder().encode("x"));
  await expect.poll(() => follower.picture.get("/f/later")).toBe("x");
  expect(follower.faults).toEqual([]);
}

test("a feed that is begun without a connection begins with the connection", async () => {
  const suspended = become("suspended");
  proxy.refuse(true);
  proxy.cut();
  await suspended;
  const follower = new Follower();
  const feed = tree.feed("/f", follower.options());
  proxy.refuse(false);
  await feed.synced;
  await followsOn(follower);
});

test("a watch that is lost on its way is asked for again", async () => {
  proxy.stall("to-client");
  const sent = proxy.bytes["to-server"];
  const follower = new Follower();
  const feed = tree.feed("/f", follower.options());
  await expect.poll(() => proxy.bytes["to-server"]).toBeGreaterThan(sent);
  const suspended = become("suspended");
  proxy.cut();
  await suspended;
  proxy.resume();
  await feed.synced;
  await followsOn(follower);
});

test("a watch that is refused is asked for again after a while, and given up with its feed", async () => {
  const small = await startBench({ limits: { maxWatchesPerConnection: 1 } });
  const other = await connectZooKeeperTree({
    servers: small.hosts,
    clock: systemClock,
    random: systemRandom,
    resyncSpreadMs: 0,
  });
  const first = other.feed("/a", new Follower().options());
  await first.synced;
  const follower = new Follower();
  const second = other.feed("/b", follower.options());
  const third = other.feed("/c", new Follower().options());
  await third.close();
  await first.close();
  await second.synced;
  await small.tree.create("/b");
  await expect.poll(() => follower.picture.has("/b")).toBe(true);
  await other.close();
  await small.close();
});
