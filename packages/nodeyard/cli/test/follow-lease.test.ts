import { encodeLease, encodeNode, type Lease, leasePath, newNode, paths } from "@nodeyard/model";
import { askForNodes, type OperationHandles, releaseLease } from "@nodeyard/operations";
import { leaseFields, rowOf } from "@nodeyard/operations/listing";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { createMemoryTree, ensurePath, type MemoryTree } from "@nodeyard/tree";
import { afterEach, beforeEach, expect, test } from "vitest";
import { treeBackend } from "../src/backend/tree.ts";
import { followLease, type LeaseProgress } from "../src/follow.ts";

let handles: OperationHandles;
let other: MemoryTree;
let lease: Lease;
let seen: LeaseProgress[];

beforeEach(async () => {
  const clock = new VirtualClock();
  const random = seededRandom(7);
  const cluster = createMemoryTree({ clock, random });
  other = cluster.connect({ name: "launcher" });
  handles = { tree: cluster.connect({ name: "client" }), clock, random };
  await ensurePath(other, paths.nodes);
  await node("requested-by-nobody");
  seen = [];
});
afterEach(async () => {
  await handles.tree.close();
  await other.close();
});

async function node(request: string): Promise<string> {
  const data = encodeNode(newNode({ state: "building", type: ["small"], allocatedTo: request }, 1));
  const { path } = await other.create(`${paths.nodes}/`, data, { sequential: true });
  return path.slice(path.lastIndexOf("/") + 1);
}

async function follow() {
  const backend = treeBackend(handles, "", "ann@here", async () => {});
  const youngest = await backend.youngestNode();
  lease = await askForNodes(handles, { labels: ["small"], owner: "ann@here", forMs: 1_000 });
  const row = rowOf(leaseFields, lease) as unknown as LeaseProgress["lease"];
  return followLease(backend, row, youngest, (progress) => seen.push(progress));
}

test("reports the nodes that are made for it, no others, and its grant", async () => {
  const following = await follow();
  const ours = await node(lease.request!);
  await node("100-0000009999");
  await other.set(leasePath(lease.id), encodeLease({ ...lease, state: "granted", nodes: [ours] }));
  expect(await following.ended).toMatchObject({ state: "granted", nodes: [ours] });
  const reported = new Set(seen.flatMap(({ nodes }) => [...nodes.keys()]));
  expect([...reported]).toEqual([ours]);
  await following.close();
});

test("a refusal is an end, too", async () => {
  const following = await follow();
  await other.set(leasePath(lease.id), encodeLease({ ...lease, state: "failed" }));
  expect(await following.ended).toMatchObject({ state: "failed" });
  await following.close();
});

test.each([
  ["somebody releases it", () => releaseLease({ ...handles, tree: other }, lease.id)],
  ["it expires", () => other.delete(leasePath(lease.id))],
])("when %s, the waiting ends", async (_, end) => {
  const following = await follow();
  await end();
  await expect(following.ended).rejects.toMatchObject({ code: "lease.gone" });
  await following.close();
});

test("records that make no sense hide nothing", async () => {
  const following = await follow();
  await other.set(paths.request(lease.request!), Buffer.from("not json"));
  await other.create(`${paths.nodes}/`, Buffer.from("[]"), { sequential: true });
  await other.set(leasePath(lease.id), Buffer.from("{}"));
  await other.set(leasePath(lease.id), encodeLease({ ...lease, state: "granted" }));
  expect(await following.ended).toMatchObject({ state: "granted" });
  await following.close();
});

test("events from the time without a connection are reported afterwards", async () => {
  const following = await follow();
  (handles.tree as MemoryTree).disconnect(true);
  await other.set(leasePath(lease.id), encodeLease({ ...lease, state: "granted" }));
  (handles.tree as MemoryTree).reconnect();
  await (handles.clock as VirtualClock).advance(5_000);
  expect(await following.ended).toMatchObject({ state: "granted" });
  await following.close();
});

test("closing ends the waiting", async () => {
  const following = await follow();
  await following.close();
  await expect(following.ended).rejects.toMatchObject({ code: "lease.not_followed" });
});
