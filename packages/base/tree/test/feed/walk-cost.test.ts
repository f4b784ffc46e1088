import { seededRandom, systemClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { createMemoryTree } from "../../src/memory/index.ts";
import { Follower } from "../suite/index.ts";

const NODES = 200;

/** Nodes with data, each with a lock parent and a contender beneath it, as Nodepool lays them out. */
async function populated() {
  const cluster = createMemoryTree({ clock: systemClock, random: seededRandom(1) });
  const [tree, other] = [cluster.connect(), cluster.connect()];
  await tree.create("/nodes");
  for (let index = 0; index < NODES; index++) {
    await tree.commit([
      { op: "create", path: `/nodes/${index}`, data: Buffer.from("{}") },
      { op: "create", path: `/nodes/${index}/lock` },
      { op: "create", path: `/nodes/${index}/lock/x__lock__`, ephemeral: true, sequential: true },
    ]);
  }
  const follower = new Follower();
  const before = tree.counters.calls;
  const depth = (path: string) => path.split("/").length - 2;
  const feed = tree.feed(
    "/nodes",
    follower.options({
      interest: (path) => (depth(path) === 1 ? "data" : depth(path) === 3 ? "name" : "none"),
      descend: (path) => depth(path) < 3,
    }),
  );
  await feed.synced;
  return { tree, other, follower, feed, calls: () => tree.counters.calls - before };
}

test("the first walk reads each record once and lists each znode that may have children once", async () => {
  const { follower, calls } = await populated();
  expect(follower.picture.size).toBe(2 * NODES);
  // The root's list, and per node its data, its list and its lock's list.
  expect(calls()).toBe(1 + 3 * NODES);
});

test("a later walk asks for stats, and reads only what changed", async () => {
  const { other, tree, follower, feed, calls } = await populated();
  tree.disconnect(true);
  await other.set("/nodes/7", Buffer.from("new"));
  const before = calls();
  tree.reconnect();
  await feed.resync();
  const from = follower.said().indexOf("gap");
  const walks = follower.said(from).filter((word) => word === "synced").length;
  expect(follower.said(from).filter((word) => word.startsWith("put"))).toEqual(["put /nodes/7=new"]);
  // A sync before the walk that was asked for, and the read of what changed.
  expect(calls() - before).toBe(walks * (1 + 3 * NODES) + 2);
});

test("reads in flight stay within the bound", async () => {
  let [flying, most] = [0, 0];
  const cluster = createMemoryTree({
    clock: systemClock,
    random: seededRandom(1),
    latencyMs: [0, 1],
    faults: ({ kind }) => {
      if (kind === "get") most = Math.max(most, ++flying);
      return undefined;
    },
  });
  const tree = cluster.connect();
  await tree.create("/r");
  await Promise.all(Array.from({ length: 50 }, (_, index) => tree.create(`/r/${index}`)));
  const follower = new Follower();
  const feed = tree.feed("/r", {
    interest: (path) => (path === "/r" ? "none" : "data"),
    descend: (path) => path === "/r",
    concurrency: 5,
    onChange: (change) => {
      if (change.type === "put") flying--;
      follower.take(change);
    },
  });
  await feed.synced;
  expect(follower.picture.size).toBe(50);
  expect(most).toBe(5);
});
