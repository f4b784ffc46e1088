import { decodeNode, paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { chargeOf } from "../src/limits/spending.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

/** A node costs one euro a second. */
const CLOUD = fakeProvider("cloud", { prices: { small: 3_600 }, "price-currency": "EUR" });
const config = (amount: number) =>
  launcherConfig([CLOUD], { budgets: new Map([["t1", { amount, currency: "EUR", timezone: "UTC" }]]) });
const of = { tenant_name: "t1" };

function ledger(world: World): Record<string, number> | undefined {
  const [path] = world.children("/nodeyard/spending");
  return path === undefined
    ? undefined
    : (world.json(`/nodeyard/spending/${path}`) as Record<string, number>);
}

/** Takes a node for so long, and waits until it is gone. Returns what it cost by its record: at least, and at most. */
async function used(world: World, ms: number, fields: object = of): Promise<readonly [number, number]> {
  const request = await world.ask({ ...fields });
  await world.fulfilled(request);
  const [node] = world.request(request)!.nodes as string[];
  const { created_time, driver_data } = world.node(node!)!;
  const { given_at } = (driver_data as { nodeyard: { given_at?: number } }).nodeyard;
  const from = given_at ?? (created_time as number) * 1_000;
  await world.run(ms);
  const least = world.clock.now() - from;
  await world.use(request);
  await world.until("it is gone", () => world.node(node!) === undefined);
  return [least / 1_000, (world.clock.now() - from) / 1_000];
}

describe("budgets of tenants", () => {
  test("all launchers stop at the same amount, know it after a restart, and go on when it is raised", async () => {
    const world = new World();
    await world.start("a", config(100));
    await world.start("b", config(100));
    const [least, most] = await used(world, 60_000);
    await world.until("it is written", () => ledger(world)?.instances === 1);
    expect(ledger(world)!.EUR).toBeGreaterThanOrEqual(least);
    expect(ledger(world)!.EUR).toBeLessThanOrEqual(most);
    const running = await world.ask(of);
    await world.fulfilled(running);
    await world.run(60_000);
    const second = await world.ask(of);
    const other = await world.ask({ tenant_name: "t2" });
    await world.fulfilled(other);
    const codes = () => world.members.map(({ launcher }) => launcher.verdict(second)?.code);
    await world.until("both let it wait", () => codes().every((code) => code === "budget.used"));
    // What runs goes on, and its whole cost counts at its end.
    expect(world.request(running)?.state).toBe("fulfilled");
    await world.use(running);
    await world.until("its node is gone", () => ledger(world)?.instances === 2);
    for (const { launcher } of world.members.splice(0)) await world.settle(launcher.close());
    const { launcher, journal, counters } = await world.start("c", config(100));
    await world.run(5_000);
    expect(launcher.verdict(second)).toMatchObject({
      code: "budget.used",
      facts: { tenant: "t1", budget: 100 },
    });
    await world.until(
      "it is told",
      () => counters.value("launcher.budgets", { tenant: "t1", level: "used" }) === 1,
    );
    expect(journal.events.map(({ event }) => event)).toContain("budget.used");
    await world.settle(launcher.reconfigure(config(100_000)));
    await world.fulfilled(second);
  });

  test("what a node cost before it was given to the tenant is not the tenant's, and each node counts once", async () => {
    const world = new World();
    const { counters } = await world.start("a", config(1_000_000));
    const first = await world.ask({ tenant_name: "t2" });
    await world.fulfilled(first);
    await world.settle(world.other.delete(paths.request(first)));
    await world.until("it is free", () => world.nodes().every(({ allocated_to }) => allocated_to === null));
    await world.run(300_000);
    const [least, most] = await used(world, 10_000);
    await world.until("it is written", () => ledger(world)?.instances === 1);
    expect(ledger(world)!.EUR).toBeGreaterThanOrEqual(least);
    expect(ledger(world)!.EUR).toBeLessThanOrEqual(most);
    expect(most).toBeLessThan(60);
    const cost = (tenant: string) =>
      counters.value("launcher.cost", { label: "small", tenant, currency: "EUR" });
    await world.until("it is counted", () => cost("t1") > 0);
    expect(cost("t1")).toBeCloseTo(ledger(world)!.EUR!, 0);
    expect(cost("")).toBeGreaterThan(300);
  });

  test("of a node that is there when the month ends each month has its part; in another currency it costs nothing", () => {
    const [from, until] = [Date.UTC(2026, 10, 30, 22), Date.UTC(2026, 11, 1, 1)];
    const given = (fields: object) =>
      decodeNode(
        "1",
        Buffer.from(
          JSON.stringify({ state: "in-use", state_time: 1, created_time: from / 1_000, ...fields }),
        ),
      );
    const price = (currency: string) => ({ driver_data: { nodeyard: { price: { per_hour: 2, currency } } } });
    const held = { allocated_to: "100-1", tenant_name: "t1" };
    const budgets = config(1).budgets!;
    const charge = (before: object, after?: object, written = until) =>
      chargeOf(given(before), after && given(after), budgets, { believed: until, written });
    const scope = "spending 2026-12|t1";
    expect(charge({ ...held, ...price("EUR") })).toMatchObject({ scope, amount: { instances: 1, EUR: 2 } });
    expect(charge({ ...held, ...price("USD") })).toMatchObject({
      scope,
      amount: { instances: 1, unpriced: 1 },
    });
    // Taken back, and given on.
    const back = { ...held, ...price("EUR"), allocated_to: null };
    expect(charge({ ...held, ...price("EUR") }, back)).toMatchObject({ amount: { EUR: 2 } });
    // A clock has jumped: whichever is right, not more than that.
    expect(charge({ ...held, ...price("EUR") }, back, until - 1_800_000)).toMatchObject({
      amount: { EUR: 1 },
    });
    expect(charge({ ...held, ...price("EUR") }, back, until + 9e9)).toMatchObject({ amount: { EUR: 2 } });
    expect(charge(back, { ...held, ...price("EUR") })).toBeUndefined();
    expect(charge({ ...held, ...price("EUR") }, { ...held, ...price("EUR"), state: "used" })).toBeUndefined();
    expect(charge({ ...held, ...price("EUR"), tenant_name: "t2" })).toBeUndefined();
  });

  test("ledgers of past months are deleted, and a record that is no ledger counts as none", async () => {
    const world = new World();
    await world.put("/nodeyard/spending/2023-09|t1", { v: 1, instances: 1, whole: true, EUR: 500 });
    await world.put("/nodeyard/spending/2023-10|t1", { v: 1, instances: 1, whole: true, EUR: 500 });
    await world.put("/nodeyard/spending/2023-11|t1", "nonsense");
    const { counters } = await world.start("a", config(100));
    await world.until(
      "the oldest is deleted",
      () => world.children("/nodeyard/spending").length === 2,
      200_000,
    );
    expect(counters.value("view.records_skipped", { kind: "spending", code: "record.bad_field" })).toBe(1);
    const request = await world.ask(of);
    await world.fulfilled(request);
  });
});
