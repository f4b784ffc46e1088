import {
  decodeNode,
  decodeRequest,
  encodeNode,
  encodeRequest,
  newNode,
  newRequest,
  paths,
} from "@nodeyard/model";
import { seededRandom, systemClock } from "@nodeyard/runtime";
import { memoryJournal, memoryLog } from "@nodeyard/telemetry";
import { createMemoryTree, ensurePath, Fence } from "@nodeyard/tree";
import { expect, test } from "vitest";
import type { RecordHandles } from "../src/held-records.ts";
import { lockRequest } from "../src/requests/accept.ts";
import { resetLost } from "../src/requests/finish.ts";
import { before, touches } from "./rules/before-write.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const ID = "100-0000000000";

test("a request that is deleted during a launch leaves its node free and unlocked", async () => {
  const world = new World();
  const { latency } = world.cloud.knobs;
  world.cloud.adjust({ ...world.cloud.knobs, latency: { ...latency, boot: { minMs: 5_000, maxMs: 5_000 } } });
  await world.start("a", launcherConfig([fakeProvider()]));
  const id = await world.ask();
  const [node] = await world.until("a node is made", () => {
    const nodes = world.nodes().filter(({ state }) => state === "building");
    return nodes.length > 0 && nodes;
  });
  await world.settle(world.other.delete(paths.request(id)));
  await world.until("it is up", () => world.node(node!.id)?.state === "ready");
  await world.run(10_000);
  expect(world.node(node!.id)).toMatchObject({ state: "ready", allocated_to: null });
  expect(world.children(paths.nodeLock(node!.id))).toEqual([]);
});

/** A request that has been fulfilled, and a view that has not seen it yet. */
async function behind() {
  const handles = { clock: systemClock, random: seededRandom(1) };
  const tree = createMemoryTree(handles).connect();
  for (const path of [paths.requests, paths.requestLock(ID), paths.nodes]) await ensurePath(tree, path);
  const fields = {
    state: "ready",
    provider: "cloud",
    pool: "main",
    type: ["small"],
    allocatedTo: ID,
  } as const;
  const made = await tree.create(`${paths.nodes}/`, encodeNode(newNode({ ...fields, type: ["small"] }, 1)), {
    sequential: true,
  });
  const node = made.path.slice(made.path.lastIndexOf("/") + 1);
  const request = { nodeTypes: ["small"], requestor: "zuul" };
  const pending = encodeRequest(newRequest({ ...request, state: "pending" }, 1));
  await tree.create(paths.request(ID), pending);
  const fulfilled = encodeRequest(newRequest({ ...request, state: "fulfilled", nodes: [node] }, 2));
  await tree.set(paths.request(ID), fulfilled);
  const data = (await tree.get(paths.node(node))).data;
  const view = {
    complete: true,
    requests: { byId: new Map([[ID, { id: ID, record: decodeRequest(ID, pending), version: 0 }]]) },
    nodes: {
      byRequest: { get: () => new Set([node]) },
      byId: new Map([[node, { id: node, record: decodeNode(node, data), version: 0, contenders: [] }]]),
    },
  };
  const context = {
    ...handles,
    tree,
    view,
    fence: new Fence(tree, handles.clock, handles.random),
    log: memoryLog(),
    journal: memoryJournal(10),
    ledgers: { counted: () => undefined },
  } as unknown as RecordHandles;
  const records = async () => [
    decodeRequest(ID, (await tree.get(paths.request(ID))).data).state,
    decodeNode(node, (await tree.get(paths.node(node))).data).allocatedTo,
  ];
  return { context, tree, view, records };
}

test("a request that was fulfilled meanwhile is not reset, whatever the view shows", async () => {
  const { context, tree, records } = await behind();
  expect(await resetLost(context, ID)).toBe("changed");
  expect(await records()).toEqual(["fulfilled", ID]);
  expect(await tree.children(paths.requestLock(ID))).toEqual([]);
});

test("no request is locked while the view is not complete", async () => {
  const { context, tree, view } = await behind();
  view.complete = false;
  const before = tree.counters.calls;
  expect(await lockRequest(context, ID)).toBe("busy");
  expect(tree.counters.calls).toBe(before);
});

test("a lost request's nodes are free before it is open again, but for those that somebody else has", async () => {
  const { context, tree, view } = await behind();
  const pending = encodeRequest(newRequest({ nodeTypes: ["small"], requestor: "zuul", state: "pending" }, 3));
  await tree.set(paths.request(ID), pending);
  const known = view.nodes.byId;
  const [ready] = [...known.keys()] as [string];
  const add = async (state: "init" | "ready", contenders: readonly string[] = []) => {
    const data = encodeNode(newNode({ state, type: ["small"], allocatedTo: ID }, 1));
    const { path } = await tree.create(`${paths.nodes}/`, data, { sequential: true });
    const id = path.slice(path.lastIndexOf("/") + 1);
    known.set(id, { id, record: decodeNode(id, data), version: 0, contenders: [...contenders] as never[] });
    return id;
  };
  const fresh = await add("init");
  const locked = await add("ready", ["somebody"]);
  const given = await add("ready");
  const other = newNode({ state: "ready", type: ["small"], allocatedTo: "100-0000000001" }, 1);
  await tree.set(paths.node(given), encodeNode(other));
  // The view hears of it while the nodes are taken back one after the other.
  known.set(given, { id: given, record: other, version: 1, contenders: [] });
  view.nodes.byRequest.get = () => new Set(known.keys());
  expect(await resetLost(context, ID)).toBe("replan");
  const state = async (id: string) => {
    const { state: now, allocatedTo } = decodeNode(id, (await tree.get(paths.node(id))).data);
    return [now, allocatedTo];
  };
  expect(await state(ready)).toEqual(["ready", null]);
  expect(await state(fresh)).toEqual(["deleting", null]);
  expect(await state(locked)).toEqual(["ready", ID]);
  expect(await state(given)).toEqual(["ready", "100-0000000001"]);
  for (const id of [ready, fresh, given]) expect(await tree.children(paths.nodeLock(id))).toEqual([]);
});

test("a free node that went to another request before it was locked is left to that one", async () => {
  const world = new World();
  const id = await world.makeNode({ state: "ready", provider: "cloud", pool: "main", type: ["small"] });
  const other = await world.ask({ state: "fulfilled", nodes: [id] });
  const given = before(world, touches(paths.nodeLock(id)), () => {
    const record = { ...world.node(id), allocated_to: other };
    void world.other.set(paths.node(id), Buffer.from(JSON.stringify(record)));
  });
  await world.start("a", launcherConfig([fakeProvider()]));
  const { nodes } = await world.fulfilled(await world.ask());
  expect([given(), nodes]).toEqual([true, [expect.not.stringMatching(id)]]);
  expect(world.node(id)).toMatchObject({ state: "ready", allocated_to: other });
});
