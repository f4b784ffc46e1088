import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  BREAKERS,
  failurePath,
  MIN_READY,
  nodeStates,
  offeringKey,
  paths,
  requestStates,
} from "@nodeyard/model";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { Counters, memoryLog } from "@nodeyard/telemetry";
import { type EmbeddedTree, ensurePath, openEmbeddedTree } from "@nodeyard/tree";
import { View } from "@nodeyard/view";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Gauge, Population, waitingGauges } from "../src/index.ts";

const folder = mkdtempSync(join(tmpdir(), "nodeyard-metrics-"));
let tree: EmbeddedTree;
let view: View;

beforeAll(async () => {
  tree = await openEmbeddedTree({ folder, clock: systemClock, random: systemRandom });
  for (const path of [paths.nodes, paths.requests, paths.component("pool")]) await ensurePath(tree, path);
  const handles = { clock: systemClock, random: systemRandom, log: memoryLog(), counters: new Counters() };
  view = new View({ tree, ...handles });
  await view.start();
});
afterAll(async () => {
  await view.close();
  await tree.close();
  rmSync(folder, { recursive: true, force: true });
});

const data = (value: object) => Buffer.from(JSON.stringify(value));
const found = (gauges: readonly Gauge[], name: string, labels: object) =>
  gauges.find((gauge) => gauge.name === name && JSON.stringify(gauge.labels) === JSON.stringify(labels))
    ?.value;

describe("nodes and requests in numbers", () => {
  test("cost by provider, label and tenant returns to 0; a free node counts for no tenant", async () => {
    const population = new Population(view);
    const priced = (per_hour: number, currency: string, allocated_to: string | null) => ({
      ...{ state: "ready", provider: "priced", type: ["dear"], allocated_to, tenant_name: "qa" },
      driver_data: { nodeyard: { price: { per_hour, currency } } },
    });
    const costs = () =>
      population
        .gauges()
        .filter(({ name }) => name.endsWith("cost_per_hour"))
        .map(({ name, labels, value }) => [name, ...Object.values(labels), value].join(" "));
    const all = [
      priced(0.1, "USD", "100-0000000001"),
      priced(0.2, "USD", null),
      priced(0.3, "EUR", "100-0000000002"),
    ];
    const node = (number: number) => `${paths.nodes}/000000080${number}`;
    for (const [number, one] of all.entries()) await tree.create(node(number), data(one));
    await view.resync();
    expect(costs()).toEqual([
      "provider_cost_per_hour priced USD 0.3",
      "provider_cost_per_hour priced EUR 0.3",
      "label_cost_per_hour dear USD 0.3",
      "label_cost_per_hour dear EUR 0.3",
      "tenant_cost_per_hour qa USD 0.1",
      "tenant_cost_per_hour qa EUR 0.3",
    ]);
    for (const number of all.keys()) await tree.delete(node(number));
    await view.resync();
    expect(costs()).toEqual([]);
    population.close();
  });

  test("providers and labels of pools are there with zeros; others only while there is something", async () => {
    const population = new Population(view);
    const pool = {
      kind: "pool",
      hostname: "h",
      provider_name: "cloud",
      name: "main",
      supported_labels: ["small"],
    };
    const { path } = await tree.create(`${paths.component("pool")}/h`, data(pool), { sequential: true });
    const node = { state: "ready", provider: "foreign", type: ["small", "odd"] };
    await tree.create(`${paths.nodes}/0000000001`, data(node));
    await view.resync();
    const gauges = population.gauges();
    expect(found(gauges, "provider_nodes", { provider: "cloud", state: "ready" })).toBe(0);
    expect(
      gauges.filter(({ name, labels }) => name === "provider_nodes" && labels.provider === "cloud"),
    ).toHaveLength(11);
    expect(found(gauges, "provider_nodes", { provider: "foreign", state: "ready" })).toBe(1);
    expect(found(gauges, "label_nodes", { label: "small", state: "ready" })).toBe(1);
    expect(found(gauges, "label_nodes", { label: "odd", state: "ready" })).toBe(1);
    expect(found(gauges, "nodes", { state: "ready" })).toBe(1);
    await tree.delete(`${paths.nodes}/0000000001`);
    await tree.delete(path);
    await view.resync();
    expect(population.gauges().filter(({ name }) => name === "provider_nodes")).toEqual([]);
    population.close();
  });

  test("addressable are requests all of whose labels the pool has (check 34)", async () => {
    const population = new Population(view);
    const pool = (name: string, labels: readonly string[]) =>
      data({ kind: "pool", hostname: "h", provider_name: "cloud", name, supported_labels: labels });
    const made = [
      await tree.create(`${paths.component("pool")}/h`, pool("main", ["a", "b"]), { sequential: true }),
      await tree.create(`${paths.component("pool")}/h`, pool("other", ["c"]), { sequential: true }),
    ];
    const wants: readonly (readonly string[])[] = [["a"], ["b", "a", "a"], ["a", "c"], ["c"], ["d"]];
    for (const [at, labels] of wants.entries())
      await tree.create(
        `${paths.requests}/100-000000000${at}`,
        data({ state: "pending", node_types: labels }),
      );
    await view.resync();
    const addressable = (name: string) =>
      found(population.gauges(), "pool_addressable_requests", { provider: "cloud", pool: name });
    expect([addressable("main"), addressable("other")]).toEqual([2, 1]);
    const waiting = Object.fromEntries(
      ["a", "b", "c", "d"].map((label, at) => [label, { waiting: [3, 1, 2, 1][at] }]),
    );
    expect(population.counts()).toEqual({ nodes: {}, waiting: 5, labels: waiting, providers: {} });
    await tree.set(`${paths.requests}/100-0000000004`, data({ state: "fulfilled", node_types: ["d"] }));
    await tree.create(`${paths.nodes}/0000000001`, data({ state: "ready", provider: "cloud", type: ["a"] }));
    await view.resync();
    expect(population.counts()).toMatchObject({
      nodes: { ready: 1 },
      waiting: 4,
      labels: { a: { ready: 1, waiting: 3 }, c: { waiting: 2 } },
      providers: { cloud: { ready: 1 } },
    });
    expect(population.counts().labels).not.toHaveProperty("d");
    await tree.delete(`${paths.nodes}/0000000001`);
    for (const at of wants.keys()) await tree.delete(`${paths.requests}/100-000000000${at}`);
    for (const { path } of made) await tree.delete(path);
    await view.resync();
    population.close();
  });

  test("the longest waits are reported by label and provider, and breakers by what they close", async () => {
    const offering = { provider: "cloud", az: "b", type: "m1|large" };
    const breaker = failurePath(offeringKey(offering));
    const records: Readonly<Record<string, object>> = {
      [`${paths.nodes}/0000000001`]: { state: "deleting", provider: "cloud", type: ["a"], state_time: 200 },
      [`${paths.nodes}/0000000002`]: { state: "deleting", provider: "cloud", type: ["a"], state_time: 100 },
      [`${paths.nodes}/0000000003`]: { state: "ready", provider: "cloud", type: ["a"], state_time: 50 },
      [`${paths.requests}/100-0000000001`]: { state: "pending", node_types: ["a", "b"], created_time: 30 },
      [`${paths.requests}/100-0000000002`]: { state: "requested", node_types: ["b"], created_time: 20 },
      [`${paths.requests}/100-0000000003`]: { state: "fulfilled", node_types: ["a"], created_time: 10 },
      [`${paths.requests}/900-0000000004`]: {
        state: "requested",
        node_types: ["b"],
        requestor: MIN_READY,
        created_time: 5,
      },
      [breaker]: {},
      [`${breaker}/probe`]: {},
    };
    await ensurePath(tree, BREAKERS);
    for (const [path, record] of Object.entries(records)) await tree.create(path, data(record));
    await view.resync();
    expect(waitingGauges(view)).toEqual([
      { name: "provider_oldest_deleting_timestamp_seconds", labels: { provider: "cloud" }, value: 100 },
      { name: "label_oldest_request_timestamp_seconds", labels: { label: "b" }, value: 20 },
      { name: "label_oldest_request_timestamp_seconds", labels: { label: "a" }, value: 30 },
      { name: "breaker_open", labels: offering, value: 1 },
    ]);
    for (const path of Object.keys(records).reverse()) await tree.delete(path);
    await view.resync();
    expect(waitingGauges(view)).toEqual([]);
  });

  test("after any changes the numbers equal a count from scratch", async () => {
    const states = fc.constantFrom(...nodeStates);
    const step = fc.record({
      id: fc.integer({ min: 1, max: 6 }),
      kind: fc.constantFrom("node", "request"),
      state: states,
      requestState: fc.constantFrom(...requestStates),
      provider: fc.constantFrom("p", "q", null),
      labels: fc.subarray(["a", "b", "c"]),
      gone: fc.boolean(),
    });
    const followed = new Population(view);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        for (const { id, kind, state, requestState, provider, labels, gone } of steps) {
          const path =
            kind === "node" ? `${paths.nodes}/000000000${id}` : `${paths.requests}/100-000000000${id}`;
          const record =
            kind === "node" ? { state, provider, type: labels } : { state: requestState, node_types: labels };
          if ((await tree.stat(path)) === undefined) await tree.create(path, data(record));
          else if (gone) await tree.delete(path);
          else await tree.set(path, data(record));
        }
        await view.resync();
        const scratch = new Population(view);
        const [a, b] = [followed.gauges(), scratch.gauges()].map((gauges) =>
          gauges.map((gauge) => JSON.stringify(gauge)).sort(),
        );
        scratch.close();
        expect(a).toEqual(b);
        const all = followed.gauges().filter(({ name }) => name === "nodes");
        expect(all.reduce((sum, { value }) => sum + value, 0)).toBe(view.nodes.byId.size);
      }),
      { numRuns: 40 },
    );
    followed.close();
  });
});
