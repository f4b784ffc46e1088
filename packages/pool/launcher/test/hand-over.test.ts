import { DriverError, type Handover, type NodeUse } from "@nodeyard/driver";
import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { withMethods } from "./rules/with-methods.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

type Ready = Handover["ready"];

/** A cloud whose driver has something to do before a ready node is given to somebody. */
const handing = (handover: Handover) => withMethods(({ offers }) => ({ offers: { ...offers, handover } }));

async function started(ready: Ready, more: Partial<Handover> = {}) {
  const world = new World();
  const labels = new Map([
    ["small", { name: "small", minReady: 1, maxReadyAgeMs: Number.POSITIVE_INFINITY }],
  ]);
  const member = await world.start("a", launcherConfig([fakeProvider("cloud")], { labels }), {
    wrap: handing({ ready, ...more }),
  });
  const idle = () =>
    world.until("a node is ready and nobody's", () =>
      world.nodes().find(({ state, allocated_to }) => state === "ready" && allocated_to === null),
    );
  return { world, member, idle };
}

describe("before a ready node is delivered", () => {
  test("its driver is asked, once the node is allocated, and waited for", async () => {
    const seen: unknown[] = [];
    let go: () => void = () => undefined;
    const { world, idle } = await started((tag) => {
      seen.push([tag.nodeId, world.node(tag.nodeId)?.allocated_to]);
      return new Promise((resolve) => {
        go = resolve;
      });
    });
    const ready = await idle();
    expect(seen, "what was launched for nobody is asked about when it is given away").toEqual([]);
    const request = await world.ask();
    await world.until("it is asked", () => seen.length > 0);
    expect(seen).toEqual([[ready.id, request]]);
    await world.run(5_000);
    expect(world.request(request)?.state).toBe("pending");
    go();
    expect((await world.fulfilled(request)).nodes).toEqual([ready.id]);
  });

  test("one that is not made ready is taken out, with the reason, and the request is served by another", async () => {
    const bad = new Set<string>();
    const { world, member, idle } = await started(async ({ nodeId }) => {
      if (bad.has(nodeId)) throw new DriverError("transient", "it does not give back what it lent");
    });
    const ready = await idle();
    bad.add(ready.id);
    const { nodes } = await world.fulfilled(await world.ask());
    expect(nodes).not.toContain(ready.id);
    await world.until("it is gone", () => world.node(ready.id) === undefined);
    const dead = member.journal.events.find(({ event, node }) => event === "node.dead" && node === ready.id);
    expect(dead?.facts).toMatchObject({ why: "it does not give back what it lent" });
  });

  test("where none is made ready the request fails with the reason, after as many as launches may fail", async () => {
    let asked = 0;
    const { world, member, idle } = await started(async () => {
      asked += 1;
      throw new DriverError("transient", "it does not give back what it lent");
    });
    await idle();
    const request = await world.ask();
    await world.until("it ends", () => world.request(request)?.state === "failed", 120_000);
    expect(asked).toBe(3);
    const declined = () => member.journal.events.find(({ event }) => event === "request.declined");
    const reported = await world.until("it is told", declined);
    expect(reported.facts).toMatchObject({ reason: "it does not give back what it lent" });
  });

  test("a driver that never answers holds nothing up for longer than its half minute", async () => {
    const { world, idle } = await started(() => new Promise(() => undefined));
    const ready = await idle();
    const request = await world.ask();
    await world.until("it is taken out", () => world.node(ready.id)?.state !== "ready", 40_000);
    await world.until("it ends", () => world.request(request)?.state === "failed", 120_000);
  });

  test("its driver is notified now and then whether it is in use, of its own nodes only", async () => {
    const reported: Record<string, NodeUse>[] = [];
    const { world, idle } = await started(async () => {}, {
      async reconcile(uses) {
        const installation = world.json("/nodeyard/installation")?.id as string;
        const ours = { installation, provider: "cloud", pool: "main" };
        const tags = world.nodes().map(({ id }) => ({ ...ours, nodeId: id }));
        const foreign = { ...ours, installation: "another", nodeId: "0000000099" };
        reported.push(Object.fromEntries(await uses([...tags, foreign])));
      },
    });
    const { id } = await idle();
    const next = async () => {
      const before = reported.length;
      await world.until("it is told", () => reported.length > before + 1, 200_000);
      return reported.at(-1);
    };
    expect(await next()).toEqual({ [id]: "unused" });
    const request = await world.ask();
    expect((await world.fulfilled(request)).nodes).toEqual([id]);
    await world.until(
      "one more is ready",
      () => world.nodes().filter(({ state }) => state === "ready").length === 2,
    );
    const [other] = world.nodes().filter((node) => node.id !== id);
    expect(await next()).toEqual({ [id]: "between", [other!.id]: "unused" });
    await world.settle(world.other.delete(paths.request(request)));
    await world.until("it is nobody's", () => world.node(id)?.allocated_to === null);
    expect(await next()).toMatchObject({ [id]: "unused" });
    // An operator's doing, past any launcher.
    await world.put(paths.node(id), { ...world.node(id), state: "hold" });
    expect(await next()).toMatchObject({ [id]: "used" });
  });
});
