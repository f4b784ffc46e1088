import {
  backingData,
  backingOwner,
  encodeBacking,
  encodeProbe,
  newNode,
  offeringKey,
  paths,
  probePath,
} from "@nodeyard/model";
import { failureRule } from "@nodeyard/scheduler";
import { memoryJournal, memoryLog } from "@nodeyard/telemetry";
import type { CheckOp } from "@nodeyard/tree";
import { describe, expect, test } from "vitest";
import { FailureRecords } from "../../src/failure-records.ts";
import type { RecordHandles } from "../../src/held-records.ts";
import { markFailed, releaseBacking } from "../../src/metastatic/backing-lock.ts";
import { reclaim } from "../../src/metastatic/compare.ts";
import { before, type Call, touches } from "./before-write.ts";
import { fakeProvider, type Json, launcherConfig, World } from "./world.ts";

describe("a launch whose request is lost", () => {
  const lose = (world: World) => {
    const parent = paths.requestLock("100-0000000000");
    for (const name of world.children(parent)) void world.other.delete(`${parent}/${name}`);
  };

  for (const limits of [{}, { "max-servers": 3 }])
    test(`before its node's record: none is made (${JSON.stringify(limits)})`, async () => {
      const world = new World();
      const isNode = (call: Call) =>
        call.ops.some(({ op, path }) => op === "create" && path === `${paths.nodes}/`);
      const done = before(world, isNode, () => lose(world));
      await world.folder(paths.nodes);
      await world.start("a", launcherConfig([fakeProvider("cloud", {}, limits)]));
      await world.ask();
      await world.until("its lock is lost", done);
      await world.run(100);
      const states = world.cluster.log.flatMap(({ ops }) =>
        ops.filter(({ op, path }) => op === "create" && path === `${paths.nodes}/`),
      );
      expect(states).toEqual([]);
      await world.fulfilled("100-0000000000", 120_000);
    });

  test("before its node is locked: no machine is made", async () => {
    const world = new World();
    const isLock = touches(paths.nodeLock("0000000000"));
    const done = before(world, isLock, () => lose(world));
    await world.start("a", launcherConfig([fakeProvider()]));
    await world.ask();
    await world.until("its lock is lost", done);
    await world.run(100);
    const set = world.cluster.log.flatMap(({ ops }) =>
      ops.filter(({ op, path }) => op === "set" && path === paths.node("0000000000")),
    );
    expect(
      set.map((op) => ("data" in op ? (JSON.parse(Buffer.from(op.data!).toString()) as Json).state : "")),
    ).not.toContain("building");
    const { nodes } = await world.fulfilled("100-0000000000", 120_000);
    expect(nodes).not.toContain("0000000000");
  });
});

describe("a deletion", () => {
  /** A node in the hands of its user, who says what becomes of it; `end` lets the user go. */
  async function used() {
    const world = new World();
    const { launcher } = await world.start("a", launcherConfig([fakeProvider()]));
    const request = await world.ask();
    const [id] = (await world.fulfilled(request)).nodes as [string];
    const lock = paths.nodeLock(id);
    const user = await world.lock(lock);
    await world.settle(world.other.delete(paths.request(request)));
    const say = (state: string) =>
      world.other.set(paths.node(id), Buffer.from(JSON.stringify({ ...world.node(id), state })));
    const end = () => world.settle(world.other.delete(user));
    return { world, launcher, id, lock, say, end };
  }

  const does = (what: string, at: string) => (call: Call) =>
    call.ops.some(({ op, path }) => op === what && path === at);

  const join = (world: World, lock: string) =>
    world.other.create(`${lock}/${"b".repeat(32)}__lock__`, undefined, { ephemeral: true, sequential: true });

  test("asks for the record as it is before it touches the machine of a node that was said to be going", async () => {
    const { world, launcher, id, lock, say, end } = await used();
    await world.settle(say("deleting"));
    await world.until("it is seen", () => launcher.view.nodes.byId.get(id)?.record.state === "deleting");
    // Somebody without a fence, whose write this launcher has not seen.
    const done = before(world, touches(lock), () => void say("hold"));
    await end();
    await world.until("it is being deleted", done);
    await world.run(10_000);
    expect(world.cloud.inspect().map((machine) => machine.tag?.nodeId)).toEqual([id]);
    expect(world.node(id)?.state).toBe("hold");
  });

  test("removes no record that was changed while its machine was deleted", async () => {
    const { world, id, say, end } = await used();
    await world.settle(say("used"));
    const done = before(world, does("delete", paths.node(id)), () => void say("hold"));
    await end();
    await world.until("its record is to be removed", done);
    await world.run(10_000);
    expect(world.node(id)?.state).toBe("hold");
  });

  test("removes contenders that came too late from its line", async () => {
    const { world, id, lock, say, end } = await used();
    await world.settle(say("used"));
    const done = before(world, does("set", paths.node(id)), () => void join(world, lock));
    await end();
    await world.until("somebody stands behind it", done);
    await world.until("the node is gone", () => world.node(id) === undefined, 5_000);
  });

  test("removes no contender from a line that it no longer heads", async () => {
    const { world, id, lock, say, end } = await used();
    await world.settle(say("used"));
    let late = "";
    let isCleared = () => false;
    before(world, does("set", paths.node(id)), async () => {
      late = (await join(world, lock)).path;
      // As the late comer is to be cleared away, the launcher's own contender goes.
      isCleared = before(world, does("delete", late), () => {
        for (const name of world.children(lock))
          if (!late.endsWith(name)) void world.other.delete(`${lock}/${name}`);
      });
    });
    await end();
    await world.until("the late comer is to be cleared away", () => isCleared());
    await world.run(500);
    expect(world.children(lock).map((name) => `${lock}/${name}`)).toContain(late);
  });
});

describe("the owner of backing nodes", () => {
  const owner = backingOwner("slices");
  const fence = { op: "check", path: "/nodepool" } as const;

  /** `holder`: has its lock from the start, since one that is in use and locked by nobody is garbage. */
  async function carrier(holder = owner) {
    const world = new World();
    const userData = encodeBacking({ owner, label: "slice", slots: 2, failed: false, launched: 1 });
    const id = await world.makeNode({
      ...(JSON.parse(newNode({}, 1).source.text) as Json),
      state: "in-use",
      provider: "cloud",
      pool: "main",
      user_data: userData,
    });
    const lock = await world.contend(paths.nodeLock(id), Buffer.from(holder));
    const member = await world.start("a", launcherConfig([fakeProvider()]));
    const { view } = member.launcher;
    const context = {
      tree: world.other,
      clock: world.clock,
      view,
      log: memoryLog(),
      journal: memoryJournal(),
    } as unknown as RecordHandles;
    return { world, id, lock, context, entry: () => view.nodes.byId.get(id)! };
  }

  test("says of none that it has failed whose lock is another's", async () => {
    const { world, id, lock: theirs, context, entry } = await carrier("somebody");
    const backing = { id, provider: "slices", data: backingData(entry().record)!, entry: entry() };
    expect(await world.settle(markFailed(context, "slices", backing, fence))).toBe(false);
    expect(String(world.node(id)?.user_data)).toContain('"failed":false');
    await world.contend(paths.nodeLock(id), Buffer.from(owner));
    await world.settle(world.other.delete(theirs));
    expect(await world.settle(markFailed(context, "slices", { ...backing, entry: entry() }, fence))).toBe(
      true,
    );
    expect(String(world.node(id)?.user_data)).toContain('"failed":true');
  });

  test("says of none that it has failed whose lock goes meanwhile", async () => {
    const { world, id, lock: own, context, entry } = await carrier();
    const backing = { id, provider: "slices", data: backingData(entry().record)!, entry: entry() };
    const done = before(world, touches(paths.node(id)), () => void world.other.delete(own));
    const launchers = { ...context, tree: world.members[0]!.tree };
    await expect(world.settle(markFailed(launchers, "slices", backing, fence))).rejects.toThrow();
    expect(done()).toBe(true);
    expect(String(world.node(id)?.user_data)).toContain('"failed":false');
  });

  test("gives none back when it is the owner no more", async () => {
    const { world, id, context, entry } = await carrier();
    const backing = { id, provider: "slices", data: backingData(entry().record)!, entry: entry() };
    const give = (by: CheckOp) => world.settle(releaseBacking(context, "slices", backing, "it is empty", by));
    await expect(give({ op: "check", path: "/nodeyard/elections/left" })).rejects.toThrow();
    expect(world.node(id)?.state).toBe("in-use");
    expect(world.children(paths.nodeLock(id))).toHaveLength(1);
    expect(await give(fence)).toBe(true);
    expect(world.node(id)?.state).toBe("used");
  });

  test("claims nothing when it is the owner no more", async () => {
    const { world, id, context } = await carrier();
    await world.folder(`/nodeyard/slots/${id}`);
    const end = await world.makeNode({
      state: "ready",
      provider: "slices",
      pool: "main",
      type: ["slice"],
      driver_data: { backing_node: id, slot: 0 },
    });
    await world.run(100);
    const left = { op: "check", path: "/nodeyard/elections/left" } as const;
    await expect(world.settle(reclaim(context, end, left))).rejects.toThrow();
    expect(world.children(`/nodeyard/slots/${id}`)).toEqual([]);
    await world.settle(reclaim(context, end, fence));
    expect(world.children(`/nodeyard/slots/${id}`)).toEqual(["0"]);
  });
});

test("the end of a launch ends no try of another launcher for the same request", async () => {
  const world = new World();
  const offering = { provider: "cloud", az: null, type: "small" };
  const key = offeringKey(offering);
  const path = probePath(key);
  await world.folder(path.slice(0, path.lastIndexOf("/")));
  const [ours, theirs] = ["ours", "theirs"].map((name) =>
    world.cluster.connect({ name, sessionTimeoutMs: 10_000 }),
  );
  const data = encodeProbe("100-0000000000");
  const view = { own: new Map([[path, { data }]]), follow() {} };
  const records = new FailureRecords(
    { tree: ours, view, log: memoryLog() } as unknown as ConstructorParameters<typeof FailureRecords>[0],
    () => {},
    failureRule,
  );
  const permit = { offering, label: "small", request: "100-0000000000", began: 0 };
  await world.settle(theirs!.create(path, data, { ephemeral: true }));
  await world.settle(records.leave(permit));
  expect(world.text(path)).toBeDefined();
  await world.settle(theirs!.delete(path));
  await world.settle(ours!.create(path, data, { ephemeral: true }));
  await world.settle(records.leave(permit));
  expect(world.text(path)).toBeUndefined();
});
