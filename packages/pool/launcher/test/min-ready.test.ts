import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { before, type Call } from "./rules/before-write.ts";
import { fakeProvider, type Json, launcherConfig, World } from "./rules/world.ts";

const asking = (minReady: number) =>
  launcherConfig([fakeProvider()], {
    labels: new Map([["small", { name: "small", minReady, maxReadyAgeMs: Number.POSITIVE_INFINITY }]]),
  });

const idle = (world: World) =>
  world.nodes().filter((node) => node.state === "ready" && node.allocated_to === null);

const nodeOf = ({ ops }: Call) => ops.find(({ op, path }) => op === "set" && path.startsWith(paths.nodes));

/** The end of a min-ready request: its node is freed in the commit that deletes it. */
const retires = (call: Call) =>
  nodeOf(call) !== undefined &&
  call.ops.some(({ op, path }) => op === "delete" && path.startsWith(`${paths.requests}/900-`));

describe("a min-ready request", () => {
  /** Somebody writes its node, just before it ends. */
  async function meddled(fields: (world: World) => Promise<Json>) {
    const world = new World();
    const written = await fields(world);
    let id = "";
    before(world, retires, (call) => {
      const { path } = nodeOf(call)!;
      id = path.slice(path.lastIndexOf("/") + 1);
      void world.other.set(path, Buffer.from(JSON.stringify({ ...world.node(id), ...written })));
    });
    await world.start("a", asking(1));
    await world.until("another node is idle", () => id !== "" && idle(world).length === 1);
    expect(world.node(id)).toMatchObject(written);
  }

  test("leaves its node on hold when an operator was quicker", () =>
    meddled(async () => ({ state: "hold" })));

  test("leaves its node to the request that has it by now", () =>
    meddled(async (world) => ({ allocated_to: await world.ask({ state: "fulfilled", nodes: [] }) })));

  test("is answered by a new node, never by one that is idle already", async () => {
    const world = new World();
    await world.start("a", asking(2));
    await world.until("two are idle", () => idle(world).length === 2);
    await world.run(1_000);
    const [kept, gone] = idle(world) as [{ id: string }, { id: string }];
    const { version } = world.cluster.znodes.stat(paths.node(kept.id))!;
    await world.put(paths.node(gone.id), { ...world.node(gone.id), state: "used" });
    await world.until("two are idle again", () => idle(world).length === 2);
    expect(world.cluster.znodes.stat(paths.node(kept.id))?.version).toBe(version);
  });

  test("is made for an idle node whose record cannot be read, and none after its repair (seed 321)", async () => {
    const world = new World();
    await world.start("a", asking(1));
    await world.until("one is idle", () => idle(world).length === 1);
    const [{ id }] = idle(world) as [{ id: string }];
    const before = world.text(paths.node(id))!;
    await world.put(paths.node(id), "");
    await world.until("another is idle", () => idle(world).length === 1);
    await world.put(paths.node(id), before);
    await world.run(60_000);
    expect(idle(world)).toHaveLength(2);
    expect(world.nodes()).toHaveLength(2);
  });
});
