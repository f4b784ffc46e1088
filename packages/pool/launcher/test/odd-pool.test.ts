import { type DriverContext, DriverError } from "@nodeyard/driver";
import { expect, test } from "vitest";
import { withMethods } from "./rules/with-methods.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const pool = (name: string, label: string) => ({
  name,
  labels: [{ name: label, "cloud-image": "image", "flavor-name": "Fake Flavor" }],
});

test("a pool with a wrong subnet is left out with its name and the reason, and the provider's other pools serve", async () => {
  const world = new World();
  const pools = [pool("wrong", "large"), pool("right", "small")];
  const { launcher, log } = await world.start("a", launcherConfig([fakeProvider("cloud", { pools })]), {
    wrap: withMethods(({ offers }) => {
      const { zones } = offers!;
      const list: NonNullable<typeof zones>["list"] = async ({ name }, signal) => {
        if (name === "wrong") throw new DriverError("configuration", "there is no subnet subnet-0");
        return zones!.list(pools[1] as never, signal);
      };
      return { offers: { ...offers, zones: { list } } };
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

test("a part that does not work while the provider serves shows in how it stands, until it works", async () => {
  const world = new World();
  let say: NonNullable<DriverContext["impaired"]> = () => {};
  const { launcher } = await world.start("a", launcherConfig([fakeProvider("cloud")]), {
    wrap: (driver) => ({
      ...driver,
      open: (given, context) => {
        say = context.impaired ?? say;
        return driver.open(given, context);
      },
    }),
  });
  const standing = () => launcher.view.standings.get("provider/cloud");
  await world.until("it is served", () => standing()?.state === "good");
  say("the notice queue", "there is none");
  say("machine one", "it does not answer");
  await world.until("it shows", () => standing()?.state === "degraded");
  expect(standing()).toMatchObject({
    code: "provider.impaired",
    cause: "the notice queue: there is none",
  });
  await world.fulfilled(await world.ask());
  say("the notice queue", null);
  await world.until("the other shows", () => standing()?.cause?.includes("machine one"));
  say("machine one", null);
  await world.until("all is well", () => standing()?.state === "good");
});
