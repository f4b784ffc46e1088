import { expect, test } from "vitest";
import { difference } from "../src/limits/holdings.ts";
import { withMethods } from "./rules/with-methods.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

test("a label whose amounts are no numbers is left out with the reason, and the limits hold for the others", async () => {
  const world = new World();
  const config = launcherConfig([fakeProvider("cloud", {}, { "max-cores": 8 })]);
  const { log } = await world.start("a", config, {
    wrap: withMethods(() => ({
      need: async ({ name }) => ({ instances: 1, cores: name === "large" ? Number.NaN : 4 }),
    })),
  });
  const odd = await world.ask({ node_types: ["large"] });
  await world.until("the odd one has failed", () => world.request(odd)?.state === "failed");
  expect(log.lines.map((line) => JSON.stringify(line)).join("\n")).toContain("label large takes cores NaN");
  const ids = [];
  for (let count = 0; count < 4; count++) ids.push(await world.ask({ node_types: ["small"] }));
  await world.run(30_000);
  expect(ids.filter((id) => world.request(id)?.state === "fulfilled")).toHaveLength(2);
});

test("a ledger takes no amount that is no number", () => {
  expect(difference({ cores: Number.NaN, instances: 1 }, {})).toEqual({ instances: 1 });
});
