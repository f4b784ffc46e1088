import { leasePath, leaseRequestor, paths } from "@nodeyard/model";
import { askForNodes, releaseLease } from "@nodeyard/operations";
import { seededRandom } from "@nodeyard/runtime";
import { type Json, launcherConfig, World } from "./world.ts";

/** What a command line calls operations with. */
export const handles = (world: World, tree = world.other) => ({
  tree,
  clock: world.clock,
  random: seededRandom(5),
});

export const leaseOf = (world: World, id: string) => world.json(leasePath(id));

/** Those in the line for a node's lock. */
export const contendersOf = (world: World, id: string) =>
  world.children(paths.nodeLock(id)).map((name) => `${paths.nodeLock(id)}/${name}`);

/** Whether a contender stands for a lease. */
export const isHold = (data: Uint8Array | string | undefined) =>
  Buffer.from(data ?? "")
    .toString()
    .startsWith(leaseRequestor(""));

/** Launchers, and a lease whose node another kind of launcher made: nothing but the lease leads to it. */
export async function foreignNode({ launchers = ["a"], forMs = 600_000 } = {}) {
  const world = new World();
  for (const name of launchers) await world.start(name, launcherConfig([]), { sessionTimeoutMs: 60_000 });
  const asked = await world.settle(askForNodes(handles(world), { labels: ["small"], owner: "me", forMs }));
  const request = asked.request!;
  const put = (fields: object) => world.put(paths.request(request), { ...world.request(request), ...fields });
  await put({ state: "pending" });
  const id = await world.makeNode({ state: "ready", provider: "py", type: ["small"], allocated_to: request });
  await world.run(100);
  return {
    world,
    id,
    asked,
    put,
    /** The launchers see that the lease's request is fulfilled by the node. */
    fulfil: () => put({ state: "fulfilled", nodes: [id] }),
    release: () => releaseLease(handles(world), asked.id),
    lease: () => leaseOf(world, asked.id),
    /** Somebody writes the node without a fence; started, not waited for. */
    meddle: (fields: Json) =>
      void world.other.set(paths.node(id), Buffer.from(JSON.stringify({ ...world.node(id), ...fields }))),
  };
}
