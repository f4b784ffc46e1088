import { FakeCloud } from "@nodeyard/driver-fake";
import { decodeRequest, encodeRequest, newRequest, paths } from "@nodeyard/model";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { createMemoryTree } from "@nodeyard/tree";
import { expect, test } from "vitest";
import { LauncherProcess } from "./process.ts";
import { VARIANTS } from "./setting.ts";
import { Trap } from "./trap.ts";

/** The view is compared every 60 s, spread by a quarter. */
const RESYNC_MS = 75_000;

async function site() {
  const clock = new VirtualClock();
  const random = seededRandom(11);
  let lost = 0;
  const losing = { now: false };
  const losesEvent = (client: string) => {
    const loses = losing.now && client.startsWith("launcher");
    if (loses) lost++;
    return loses;
  };
  const cluster = createMemoryTree({ clock, random, latencyMs: [1, 5], losesEvent });
  const tree = cluster.connect({ name: "zuul", sessionTimeoutMs: 600_000 });
  const clouds = new Map(["cloud", "east"].map((name) => [name, new FakeCloud({ clock, random })]));
  const environment = {
    cluster,
    clouds,
    observers: new Map(),
    clock,
    trap: new Trap(() => {}),
    config: VARIANTS[0]!,
    onCloudError: () => {},
    onTooLarge: () => {},
  };
  const start = (name: string) => new LauncherProcess(name, 5, environment);
  const made = (async () => {
    for (const path of ["/nodepool", paths.requests]) await tree.create(path);
  })();
  await clock.advance(1_000);
  await made;
  return { clock, cluster, tree, start, losing, lost: () => lost };
}

const boards = (cluster: Awaited<ReturnType<typeof site>>["cluster"]) =>
  (cluster.znodes.children(paths.nodes) ?? []).filter((id) =>
    Buffer.from(cluster.znodes.data(paths.node(id)) ?? "").includes('"lab"'),
  );

test("a lost event delays a request by no more than one resync", async () => {
  const { clock, tree, start, losing, lost } = await site();
  start("launcher-0");
  await clock.advance(10_000);
  losing.now = true;
  const record = newRequest({ state: "requested", nodeTypes: ["rare"], requestor: "zuul" }, 0);
  const made = tree.create(`${paths.requests}/100-`, encodeRequest(record), { sequential: true });
  await clock.advance(100);
  losing.now = false;
  const { path } = await made;
  expect(lost()).toBeGreaterThan(0);
  await clock.advance(RESYNC_MS + 5_000);
  const found = tree.get(path);
  await clock.advance(100);
  expect(decodeRequest(path.slice(path.lastIndexOf("/") + 1), (await found).data).state).toBe("fulfilled");
});

test("a launcher that missed the end of a leader becomes leader after one resync", async () => {
  const { clock, cluster, tree, start, losing, lost } = await site();
  const first = start("launcher-0");
  await clock.advance(5_000);
  start("launcher-1");
  await clock.advance(10_000);
  expect(boards(cluster)).toHaveLength(4);
  first.crash();
  losing.now = true;
  await clock.advance(6_000);
  losing.now = false;
  expect(lost()).toBeGreaterThan(0);
  for (const id of boards(cluster)) {
    const gone = tree.delete(paths.node(id));
    await clock.advance(100);
    await gone;
  }
  await clock.advance(2 * RESYNC_MS + 5_000);
  expect(boards(cluster)).toHaveLength(4);
});
