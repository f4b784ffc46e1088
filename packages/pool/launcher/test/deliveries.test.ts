import { paths } from "@nodeyard/model";
import { expect, test } from "vitest";
import { withMethods } from "./rules/with-methods.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

test("a machine that is up is stored at once, although the write of another was refused and that one is launched again", async () => {
  const world = new World();
  const again = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  let small = 0;
  const { counters } = await world.start("a", launcherConfig([fakeProvider()]), {
    wrap: withMethods((inner) => ({
      async *create(order, step) {
        if (order.label.name === "large") await again.promise;
        else if (++small > 1) {
          again.resolve();
          await go.promise;
        }
        const machine = yield* inner.create(order, step);
        // More than one request to the tree may have.
        return small > 1 ? machine : { ...machine, driverData: { much: "x".repeat(2_000_000) } };
      },
    })),
  });
  const id = await world.ask({ node_types: ["small", "large"] });
  await world.until("the other is ready", () => world.nodes().some(({ state }) => state === "ready"));
  expect([small, world.request(id)?.state]).toEqual([2, "pending"]);
  go.resolve();
  const { nodes } = await world.fulfilled(id);
  expect((nodes as string[]).map((node) => world.node(node)?.type)).toEqual([["small"], ["large"]]);
  expect(counters.value("launcher.fence_lost", { kind: "node" })).toBe(0);
});

test("an error after the delivery leaves the machine to its client", async () => {
  const world = new World();
  const { journal } = await world.start("a", launcherConfig([fakeProvider()]));
  const write = journal.write.bind(journal);
  journal.write = (event) => {
    if (event.event === "node.ready") throw new Error("no space left");
    write(event);
  };
  const { nodes } = await world.fulfilled(await world.ask());
  await world.run(20_000);
  const [node] = nodes as string[];
  expect(world.node(node!)?.state).toBe("ready");
  expect(world.cloud.inspect().map(({ id }) => id)).toEqual([world.node(node!)?.external_id]);
});

test("a delivery with a lost reply is one, although its client has changed the node since", async () => {
  const world = new World();
  const { journal, counters } = await world.start("a", launcherConfig([fakeProvider()]));
  const id = await world.ask();
  let lost = false;
  let changed = false;
  world.fault = ({ kind, ops }) => {
    if (lost) return changed ? undefined : "lose-request";
    lost =
      kind === "write" &&
      ops.some((op) => op.op === "set" && Buffer.from(op.data).toString().includes('"fulfilled"'));
    return lost ? "lose-reply" : undefined;
  };
  const [node] = (await world.fulfilled(id)).nodes as [string];
  const lock = await world.lock(paths.nodeLock(node));
  await world.put(paths.node(node), { ...world.node(node), state: "in-use" });
  changed = true;
  await world.until("it is told", () => journal.events.some(({ event }) => event === "request.fulfilled"));
  const told = journal.events.map(({ event }) => event);
  expect(told).toContain("node.ready");
  expect(told).not.toContain("node.given-up");
  expect(told).not.toContain("request.lost");
  expect(counters.value("launcher.fence_lost", { kind: "node" })).toBe(0);
  expect(world.node(node)?.state).toBe("in-use");
  await world.settle(world.other.delete(lock));
});
