import { DriverError } from "@nodeyard/driver";
import { expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "../rules/world.ts";

const pool = (name: string, label: string) => ({
  name,
  labels: [{ name: label, "cloud-image": "image", "flavor-name": "Fake Flavor" }],
});

test("a pool with a wrong subnet is left out with its name and the reason, and the provider's other pools serve", async () => {
  const world = new World();
  const pools = [pool("wrong", "large"), pool("right", "small")];
  const { launcher, log } = await world.start("a", launcherConfig([fakeProvider("cloud", { pools })]), {
    wrap: (driver) => ({
      ...driver,
      open: async (given, context) => {
        const provider = await driver.open(given, context);
        const { zones } = provider.offers!;
        const list: NonNullable<typeof zones>["list"] = async ({ name }, signal) => {
          if (name === "wrong") throw new DriverError("configuration", "there is no subnet subnet-0");
          return zones!.list(pools[1] as never, signal);
        };
        return { ...provider, offers: { ...provider.offers, zones: { list } } };
      },
    }),
  });
  await world.until("it is served", () => launcher.view.standings.get("provider/cloud")?.state === "good");
  await world.fulfilled(await world.ask({ node_types: ["small"] }));
  const odd = await world.ask({ node_types: ["large"] });
  await world.until("the odd one has failed", () => world.request(odd)?.state === "failed");
  expect(log.lines.map((line) => JSON.stringify(line)).join("\n")).toContain(
    "pool wrong: there is no subnet subnet-0",
  );
});
