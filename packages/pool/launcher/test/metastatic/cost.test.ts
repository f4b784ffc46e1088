import type { Driver, DriverContext } from "@nodeyard/driver";
import { type Gauge, Population } from "@nodeyard/metrics";
import { decodeRemark, paths, RETIRED, remarkPath } from "@nodeyard/model";
import { expect, test } from "vitest";
import { fakeProvider } from "../rules/world.ts";
import { config, Lab } from "./lab.ts";

const labels = [{ name: "large", "cloud-image": "image", "flavor-name": "Fake Flavor" }];
const priced = () => fakeProvider("metal", { prices: { large: 3 }, "price-currency": "EUR" }, { labels });

function costsOf(population: Population): readonly string[] {
  const shown = ({ name, labels: of, value }: Gauge) => [name, ...Object.values(of), value].join(" ");
  return population
    .gauges()
    .filter(({ name }) => name.endsWith("cost_per_hour"))
    .map(shown)
    .sort();
}

test("a slot costs its part of the machine: the tenant that has it pays, and all parts together are the machine's price", async () => {
  const lab = new Lab();
  const { launcher } = await lab.start("a", config({ "max-parallel-jobs": 3 }, {}, [priced()]));
  const population = new Population(launcher.view);
  const first = await lab.get({ tenant_name: "qa" });
  const second = await lab.get({ tenant_name: "dev" });
  await lab.run(1_000);
  const { backing } = lab.place(first);
  expect(lab.place(second).backing).toBe(backing);
  expect(costsOf(population)).toEqual([
    "label_cost_per_hour large EUR 1",
    "label_cost_per_hour slice EUR 2",
    "provider_cost_per_hour metal EUR 3",
    "tenant_cost_per_hour dev EUR 1",
    "tenant_cost_per_hour qa EUR 1",
  ]);
  expect((await lab.explain("node", first.id)).about).toMatchObject({
    cost: { per_hour: 1, currency: "EUR" },
  });
  const { pools } = await lab.explain("label", "slice");
  expect(pools.map(({ facts }) => facts)).toEqual([
    expect.objectContaining({ cost: { per_hour: 1, currency: "EUR" } }),
  ]);

  await lab.giveBack(first);
  await lab.run(1_000);
  expect(costsOf(population)).toEqual([
    "label_cost_per_hour large EUR 2",
    "label_cost_per_hour slice EUR 1",
    "provider_cost_per_hour metal EUR 3",
    "tenant_cost_per_hour dev EUR 1",
  ]);
  await lab.giveBack(second);
  await lab.gone(backing);
  await lab.run(1_000);
  expect(costsOf(population)).toEqual([]);
  population.close();
});

test("what a driver remarks on a backing node, its slots' users learn; a machine that leaves gets no new ones", async () => {
  const lab = new Lab();
  let context: DriverContext | undefined;
  const wrap = (driver: Driver): Driver => ({
    ...driver,
    open: (own, given) => {
      context = given;
      return driver.open(own, given);
    },
  });
  const { journal } = await lab.start("a", config(), { wrap });
  const node = await lab.get();
  const { backing } = lab.place(node);
  const tag = { installation: context!.installation, provider: "metal", pool: "main", nodeId: backing };
  const textOf = async (id: string) =>
    decodeRemark((await lab.settle(lab.other.get(remarkPath(id)))).data).text;
  context!.remark!(tag, "a fan has failed");
  await lab.run(1_000);
  expect(await textOf(node.id)).toBe(`a fan has failed (its backing node ${backing})`);

  // Who gets a slot later learns it from the sweep.
  const later = await lab.get();
  expect(lab.place(later).backing).toBe(backing);
  await lab.run(180_000);
  expect(await textOf(later.id)).toBe(`a fan has failed (its backing node ${backing})`);

  context!.remark!(tag, "the cloud takes it back", true);
  await lab.run(1_000);
  for (const { id } of [node, later])
    expect(await textOf(id)).toBe(`the cloud takes it back (its backing node ${backing})`);
  await lab.until("it is retired", () => lab.userData(backing).failed === true);
  expect(lab.claims(backing)).toContain(RETIRED);
  const reported = journal.events.filter(({ event }) => event === "node.remark");
  expect(reported.map((one) => one.node)).toEqual([backing, node.id, later.id, backing, node.id, later.id]);
  await lab.giveBack(node);
  expect(lab.place(await lab.get()).backing).not.toBe(backing);
  await lab.giveBack(later);
  await lab.until("it is gone", () => lab.node(backing) === undefined);
  await lab.run(180_000);
  expect(lab.children(paths.nodes).includes(backing)).toBe(false);
});
