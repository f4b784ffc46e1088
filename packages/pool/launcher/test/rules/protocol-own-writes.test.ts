import { paths } from "@nodeyard/model";
import { expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "./world.ts";

test("a launcher reads none of its own writes back: of a request's life it fetches what others wrote, once each", async () => {
  const world = new World();
  await world.start("a", launcherConfig([fakeProvider()]));
  await world.use(await world.ask().then((id) => world.fulfilled(id).then(() => id)));
  await world.until("all is gone", () => world.nodes().length === 0);
  const reads: string[] = [];
  world.fault = ({ kind, path }) => {
    if (kind !== "write" && kind !== "watch") reads.push(`${kind} ${path}`);
    return undefined;
  };
  const id = await world.ask({ node_types: ["small", "large"] });
  const { nodes } = await world.fulfilled(id);
  await world.run(1_000);
  // Zuul's request, and the list of the contenders where the lock's parent was not made by us: nothing else.
  expect(reads).toEqual([`get ${paths.request(id)}`]);
  reads.length = 0;
  await world.use(id);
  await world.until("all is gone", () => world.nodes().length === 0);
  for (const node of nodes as string[]) {
    const own = reads.filter((read) => read === `get ${paths.node(node)}`);
    // `in-use` and `used` are Zuul's; `deleting` and the end are ours.
    expect(own.length, reads.join(", ")).toBeLessThanOrEqual(2);
  }
});

test("an event of another client's write during a write of this client is neither lost nor taken for its own", async () => {
  const world = new World();
  await world.start("a", launcherConfig([fakeProvider()]));
  const id = await world.ask();
  let meddled = false;
  world.fault = ({ kind, ops }) => {
    const sets = ops.some((op) => op.op === "set" && op.path === paths.request(id));
    if (kind !== "write" || !sets || meddled) return undefined;
    meddled = true;
    // Zuul revises the priority without the lock, just before ours arrives.
    const record = { ...world.request(id), relative_priority: 7 };
    void world.other.set(paths.request(id), Buffer.from(JSON.stringify(record)));
    return { delayMs: 20 };
  };
  const record = await world.fulfilled(id, 10_000);
  expect(meddled).toBe(true);
  expect(record.relative_priority).toBe(7);
});

test("ids: a foreign client's sequential create works right after ours, with the next number", async () => {
  const world = new World();
  await world.start("a", launcherConfig([fakeProvider()]));
  const { nodes } = await world.fulfilled(await world.ask({ node_types: ["small", "large"] }));
  const last = Math.max(...(nodes as string[]).map(Number));
  const made = await world.makeNode({ state: "ready", provider: "python", pool: "p", type: ["x"] });
  expect(Number(made)).toBe(last + 1);
  const more = (await world.fulfilled(await world.ask())).nodes as string[];
  expect(Number(more[0])).toBe(last + 2);
});
