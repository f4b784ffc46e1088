import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { type CallInfo, createMemoryTree, type Fault } from "../../src/memory/index.ts";
import { Follower } from "../suite/index.ts";

const data = (text: string) => new TextEncoder().encode(text);

function setup(faults?: (call: CallInfo) => Fault, latencyMs?: readonly [number, number]) {
  const clock = new VirtualClock();
  const cluster = createMemoryTree({
    clock,
    random: seededRandom(5),
    ...(faults && { faults }),
    ...(latencyMs && { latencyMs }),
  });
  return { clock, cluster, tree: cluster.connect({ name: "a", sessionTimeoutMs: 9_000 }) };
}

/** What a promise came to, and "pending" while it has not. */
function watch(promise: Promise<unknown>): { state: string } {
  const seen = { state: "pending" };
  promise.then(
    () => (seen.state = "fulfilled"),
    (error) => (seen.state = `${error.code} ${error.outcome}`),
  );
  return seen;
}

function once(fault: Fault, kind: CallInfo["kind"] = "write"): (call: CallInfo) => Fault {
  let left = 1;
  return (call) => (call.kind === kind && left-- > 0 ? fault : undefined);
}

describe("a lost reply", () => {
  test.each([
    ["lose-request", 0],
    ["lose-reply", 1],
  ] as const)("%s: the outcome is unknown, the write was applied %i times", async (fault, applied) => {
    const { clock, cluster, tree } = setup(once(fault));
    const write = watch(tree.create("/a"));
    await clock.advance(10);
    expect(write.state).toBe("tree.connection_lost unknown");
    expect(cluster.log).toHaveLength(applied);
    await clock.advance(1_000);
    expect(tree.session()).toMatchObject({ state: "connected", epoch: 1 });
  });

  test("a lost read has no outcome", async () => {
    const { clock, tree } = setup(once("lose-reply", "get"));
    const read = watch(tree.get("/"));
    await clock.advance(10);
    expect(read.state).toBe("tree.connection_lost none");
  });

  test("a feed tells what the lost reply did not", async () => {
    const faults: Fault[] = [undefined, "lose-reply"];
    const { clock, tree } = setup((call) => (call.kind === "write" ? faults.shift() : undefined));
    await tree.create("/a", data("1"));
    const follower = new Follower();
    tree.feed("/a", follower.options());
    await clock.advance(10);
    const write = watch(tree.set("/a", data("2")));
    await clock.advance(1_000);
    expect(write.state).toBe("tree.connection_lost unknown");
    expect(follower.said()).toEqual(["put /a=1", "synced", "gap", "put /a=2", "synced"]);
  });

  test("what was started behind it on the same connection is lost with it", async () => {
    const { clock, cluster, tree } = setup(once("lose-request"));
    const writes = [tree.create("/a"), tree.create("/b")].map(watch);
    await clock.advance(10);
    expect(writes.map(({ state }) => state)).toEqual(Array(2).fill("tree.connection_lost unknown"));
    expect(cluster.log).toEqual([]);
  });
});

test("a delay holds up all that comes behind it, and order stays", async () => {
  const { clock, tree } = setup(once({ delayMs: 500 }));
  const slow = watch(tree.create("/a"));
  const behind = watch(tree.create("/a/b"));
  await clock.advance(499);
  expect([slow.state, behind.state]).toEqual(["pending", "pending"]);
  await clock.advance(10);
  expect([slow.state, behind.state]).toEqual(["fulfilled", "fulfilled"]);
});

test("a call past its deadline ends; a write that was sent may have happened", async () => {
  const { clock, cluster, tree } = setup(once({ delayMs: 500 }));
  const write = watch(tree.create("/a", data(""), { deadlineMs: 100 }));
  await clock.advance(100);
  expect(write.state).toBe("tree.call_ended unknown");
  await clock.advance(500);
  expect(cluster.znodes.stat("/a")).toBeDefined();
});

test("calls made while disconnected wait, and end at their deadline", async () => {
  const { clock, cluster, tree } = setup();
  tree.disconnect(true);
  const [waits, ends] = [watch(tree.create("/a")), watch(tree.create("/b", data(""), { deadlineMs: 50 }))];
  await clock.advance(60);
  expect([waits.state, ends.state]).toEqual(["pending", "tree.call_ended none"]);
  tree.reconnect();
  await clock.advance(10);
  expect(waits.state).toBe("fulfilled");
  expect(cluster.log).toHaveLength(1);
});

describe("a session", () => {
  test("ends at the server when its client was away for its timeout, not before", async () => {
    const { clock, cluster, tree } = setup();
    await tree.create("/bound", data(""), { ephemeral: true });
    tree.disconnect(true);
    const { trustedUntil } = tree.session();
    expect(trustedUntil).toBeLessThanOrEqual(clock.monotonic() + 6_000);
    await clock.advance(8_999);
    expect(cluster.znodes.stat("/bound")).toBeDefined();
    await clock.advance(1);
    expect(cluster.znodes.stat("/bound")).toBeUndefined();
    expect(cluster.log.at(-1)).toMatchObject({ client: "a", sessionEnd: true });
    tree.reconnect();
    expect(tree.session()).toMatchObject({ state: "connected", epoch: 2 });
  });

  test("a crashed process gets nothing more, and its session expires", async () => {
    const { clock, cluster, tree } = setup(undefined, [1, 5]);
    const made = tree.create("/bound", data(""), { ephemeral: true });
    await clock.advance(20);
    await made;
    const follower = new Follower();
    tree.feed("/", follower.options());
    await clock.advance(50);
    const reported = follower.changes.length;
    const [flying, later] = [watch(tree.create("/a")), watch(Promise.resolve())];
    tree.crash();
    const after = watch(tree.get("/"));
    await clock.advance(20_000);
    expect([flying.state, later.state, after.state]).toEqual(["pending", "fulfilled", "pending"]);
    expect(follower.changes).toHaveLength(reported);
    expect(cluster.znodes.stat("/bound")).toBeUndefined();
    // The writes that a killed process had sent are on the wire, and are carried out.
    expect(cluster.log.some(({ ops }) => ops.some(({ path }) => path === "/a"))).toBe(true);
  });
});

test("the same seed gives the same course of events", async () => {
  const play = async () => {
    const { clock, cluster, tree } = setup(undefined, [0, 9]);
    const other = cluster.connect();
    const follower = new Follower();
    tree.feed("/", follower.options());
    const calls = Array.from({ length: 40 }, (_, index) =>
      (index % 3 ? tree : other).create(`/n${index % 7}`, data(`${index}`)).catch(() => undefined),
    );
    await clock.advance(25);
    tree.disconnect();
    await clock.advance(5_000);
    await Promise.all(calls);
    return follower.said();
  };
  const first = await play();
  expect(first.length).toBeGreaterThan(8);
  expect(await play()).toEqual(first);
});

test("a slow connection skips states and sees two paths at different moments", async () => {
  const { clock, cluster, tree } = setup(undefined, [0, 20]);
  const writer = cluster.connect({ latencyMs: [0, 1] });
  const made = Promise.all([writer.create("/a", data("0")), writer.create("/b", data("0"))]);
  await clock.advance(10);
  await made;
  const follower = new Follower();
  tree.feed("/", follower.options());
  await clock.advance(500);
  for (let round = 1; round <= 30; round++) {
    const both = writer.commit([
      { op: "set", path: "/a", data: data(`${round}`) },
      { op: "set", path: "/b", data: data(`${round}`) },
    ]);
    await clock.advance(7);
    await both;
  }
  await clock.advance(500);
  const seen = (path: string) => follower.said().filter((word) => word.startsWith(`put ${path}=`));
  expect(seen("/a").length).toBeLessThan(31);
  expect(seen("/a").at(-1)).toBe("put /a=30");
  expect(seen("/a").map((word) => word.slice(7))).not.toEqual(seen("/b").map((word) => word.slice(7)));
  expect(follower.faults).toEqual([]);
});

describe("a process that stands still", () => {
  test("gets nothing until it goes on, and what it sent is carried out all the same", async () => {
    const { clock, cluster, tree } = setup(undefined, [5, 5]);
    await clock.advance(100);
    const write = watch(tree.create("/a"));
    tree.freeze();
    await clock.advance(1_000);
    expect([write.state, cluster.znodes.stat("/a") !== undefined]).toEqual(["pending", true]);
    tree.thaw();
    await clock.advance(100);
    expect(write.state).toBe("fulfilled");
  });

  test("is not trusted for pings that it did not answer, until the tree answers again", async () => {
    const { clock, tree } = setup(undefined, [5, 5]);
    await clock.advance(100);
    tree.freeze();
    await clock.advance(8_000);
    tree.thaw();
    expect(tree.session().trustedUntil).toBeLessThan(clock.monotonic());
    await clock.advance(20);
    expect(tree.session().trustedUntil).toBeGreaterThan(clock.monotonic());
  });

  test("finds its session ended when that ran out meanwhile", async () => {
    const { clock, cluster, tree } = setup(undefined, [5, 5]);
    await clock.advance(100);
    const made = tree.create("/e", data(""), { ephemeral: true });
    await clock.advance(100);
    await made;
    const { epoch } = tree.session();
    tree.freeze();
    await clock.advance(10_000);
    expect(cluster.znodes.stat("/e")).toBeUndefined();
    tree.thaw();
    await clock.advance(1_000);
    expect(tree.session()).toMatchObject({ state: "connected", epoch: epoch + 1 });
  });

  test("learns of its connection's end, and of the next one, when it goes on", async () => {
    const { clock, tree } = setup(undefined, [5, 5]);
    await clock.advance(100);
    const states: string[] = [];
    tree.onSession(({ state }) => states.push(state));
    tree.freeze();
    tree.disconnect(true);
    tree.reconnect();
    await clock.advance(1_000);
    expect(states).toEqual([]);
    tree.thaw();
    await clock.advance(1_000);
    expect(states).toEqual(["suspended", "connected"]);
    tree.disconnect(true);
    tree.freeze();
    tree.reconnect();
    await clock.advance(1_000);
    expect(states.at(-1)).toBe("suspended");
    tree.thaw();
    expect(states.at(-1)).toBe("connected");
  });
});

test("an event that is lost is made good by the next comparison", async () => {
  const clock = new VirtualClock();
  let lost = 0;
  const losesEvent = (client: string) => client === "a" && lost++ === 0;
  const cluster = createMemoryTree({ clock, random: seededRandom(5), latencyMs: [5, 5], losesEvent });
  const [tree, other] = [cluster.connect({ name: "a" }), cluster.connect({ name: "b" })];
  const seen = new Set<string>();
  const feed = tree.feed("/x", {
    interest: () => "name",
    onChange: (change) => void (change.type === "put" && seen.add(change.path)),
  });
  await clock.advance(100);
  const made = other.create("/x");
  await clock.advance(100);
  await made;
  expect([lost, seen.size]).toEqual([1, 0]);
  const compared = feed.resync();
  await clock.advance(100);
  await compared;
  expect([...seen]).toEqual(["/x"]);
});
