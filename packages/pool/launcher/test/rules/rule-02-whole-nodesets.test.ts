import fc from "fast-check";
import { expect, test } from "vitest";
import { checkLog, leftovers, VICTIM } from "./lost-writes.ts";
import { fakeProvider, launcherConfig, World } from "./world.ts";

const two = launcherConfig([
  fakeProvider("cloud", { "launch-retries": 1 }),
  fakeProvider("more", { "launch-retries": 1 }),
]);

test("rule 2: however launches fail, a nodeset is delivered whole, in order, from one pool, or not at all", async () => {
  const course = fc.record({
    labels: fc.array(fc.constantFrom("small", "large"), { minLength: 1, maxLength: 4 }),
    failures: fc.nat(6),
    errors: fc.nat(3),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(course, { minLength: 1, maxLength: 4 }), async (courses) => {
      const world = new World();
      await world.start(VICTIM, two);
      for (const { labels, failures, errors } of courses) {
        Object.assign(world.cloud.faults, { createFails: failures, endsInError: errors });
        const id = await world.ask({ node_types: labels });
        const ended = await world.until(`${id} ended`, () => {
          const record = world.request(id);
          return (record?.state === "fulfilled" || record?.state === "failed") && record;
        });
        const nodes = (ended.nodes ?? []) as string[];
        expect(nodes).toHaveLength(ended.state === "fulfilled" ? labels.length : 0);
        const records = nodes.map((node) => world.node(node)!);
        expect(records.map((node) => (node.type as string[])[0])).toEqual(nodes.length > 0 ? labels : []);
        expect(new Set(records.map((node) => `${node.provider}/${node.pool}`)).size).toBeLessThan(2);
      }
      checkLog(world.cluster.log);
    }),
    { numRuns: 30, seed: 2 },
  );
});

test("rule 2: nodes of a nodeset that failed are free for others, and unlocked", async () => {
  const world = new World();
  await world.start(VICTIM, launcherConfig([fakeProvider("cloud", { "launch-retries": 1 })]));
  world.cloud.faults.createFails = 1;
  const id = await world.ask({ node_types: ["small", "small", "small"] });
  await world.until("it failed", () => world.request(id)?.state === "failed");
  await world.settle(world.other.delete(`/nodepool/requests/${id}`));
  await world.until("the failed one is gone", () => leftovers(world, 2).length === 0);
});

test("rule 2: they serve the next request at once, while the failed one still stands", async () => {
  const world = new World();
  await world.start(VICTIM, launcherConfig([fakeProvider("cloud", { "launch-retries": 1 })]));
  world.cloud.faults.createFails = 1;
  const id = await world.ask({ node_types: ["small", "small", "small"] });
  await world.until("it failed", () => world.request(id)?.state === "failed");
  await world.until("the broken one is gone", () => world.nodes().length === 2);
  const free = world.nodes().map((node) => node.id);
  const next = await world.fulfilled(await world.ask({ node_types: ["small", "small"] }));
  expect([...(next.nodes as string[])].sort()).toEqual(free);
  expect(world.request(id)?.state).toBe("failed");
});
