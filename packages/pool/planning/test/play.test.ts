import type { Driver } from "@nodeyard/driver";
import { createFakeDriver, fakeConfig } from "@nodeyard/driver-fake";
import { metastaticDriver } from "@nodeyard/driver-metastatic";
import { staticDriver } from "@nodeyard/driver-static";
import type { LauncherConfig } from "@nodeyard/launcher";
import { seededRandom } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { config } from "../../launcher/test/metastatic/lab.ts";
import { ISOLATED } from "../../launcher/test/metastatic/sliver-lab.ts";
import { fakeProvider, launcherConfig, staticProvider } from "../../launcher/test/rig.ts";
import { World } from "../../launcher/test/rules/world.ts";
import { compare, DemandBook, DemandError, type Played, play } from "../src/index.ts";
import { PlayedUser } from "../src/played-user.ts";

const START = 1_700_000_000;
const installed: Record<string, Driver> = {
  static: staticDriver as unknown as Driver,
  metastatic: metastaticDriver as unknown as Driver,
  fake: createFakeDriver({
    config: fakeConfig,
    cloudOf: () => {
      throw new Error("a plan contacts no cloud");
    },
  }) as unknown as Driver,
};

/** Lines of a file of demand. */
const lines = (...all: readonly object[]) => all.map((line) => JSON.stringify(line)).join("\n");
/** A launch takes 60 s, a deletion 10 s; a node of `small` has two cores. */
const past = {
  node: "0000000001",
  provider: "cloud",
  pool: "main",
  label: "small",
  launched: 60,
  deleted: 10,
  resources: { cores: 2, ram: 4096 },
};
const ask = (after: number, fields: object = {}) => ({
  at: START + after,
  labels: ["small"],
  used: 300,
  ...fields,
});

const servers = (count: number, fields: Partial<LauncherConfig> = {}) =>
  launcherConfig([fakeProvider("cloud", {}, { "max-servers": count })], fields);

function playing(config: LauncherConfig, text: string, seed = 1): Promise<Played> {
  const book = new DemandBook();
  book.read("demand.jsonl", text);
  return play({ config, demand: book.demand(), seed, driverOf: (name) => installed[name] });
}
const rowOf = (today: Played, planned: Played, provider: string | null, label: string | null) =>
  compare(today, planned).rows.find((row) => row.provider === provider && row.label === label);

describe("waits", () => {
  const three = lines(past, ask(0), ask(0), ask(1));

  test("half of the servers: the others wait for a launch, a use and a deletion more, as counted by hand", async () => {
    const [today, planned] = [await playing(servers(2), three), await playing(servers(1), three)];
    // Two at once: 60 s each. The third is launched when the first is gone, 60 + 300 + 10 s after its launch began, a second before it came.
    // One at a time: 60; 370 + 60; 2 * 370 + 60 less the second that it came later.
    expect(rowOf(today, planned, "cloud", "small")).toMatchObject({
      today: { requests: 3, refused: 0, wait_median: 60, wait_p95: 429, peak_nodes: 2, peak_cores: 4 },
      planned: { requests: 3, refused: 0, wait_median: 430, wait_p95: 799, peak_nodes: 1, peak_ram: 4096 },
    });
    expect(compare(today, planned).lost).toEqual([]);
  });

  test("the same configuration gives the same columns, and another seed other draws", async () => {
    const others = [70, 80, 95].map((launched, index) => ({ ...past, node: `other${index}`, launched }));
    const demand = lines(past, ...others, ask(0), ask(0, { used: undefined }), ask(5), ask(9));
    const [one, same, other] = [1, 1, 2].map((seed) => playing(servers(1), demand, seed));
    for (const { today, planned } of compare(await one!, await same!).rows) expect(planned).toEqual(today);
    expect((await other!).outcomes).not.toEqual((await one!).outcomes);
  });

  test("a node that is kept ready is there at once", async () => {
    const ready = servers(2, {
      labels: new Map([
        ["small", { name: "small", minReady: 1, maxReadyAgeMs: Number.POSITIVE_INFINITY }],
      ]) as never,
    });
    const [today, planned] = [
      await playing(servers(2), lines(past, ask(0))),
      await playing(ready, lines(past, ask(0))),
    ];
    expect(rowOf(today, planned, "cloud", "small")).toMatchObject({
      today: { wait_median: 60, peak_nodes: 1 },
      planned: { wait_median: 0, peak_nodes: 2 },
    });
  });

  test("priority, quota of a cloud and tenants' limits count as they do in a launcher", async () => {
    const demand = lines(
      past,
      { provider: "cloud", quota: { cores: 2 } },
      ask(0, { request: "200-0000000001" }),
      ask(0, { request: "200-0000000002" }),
      ask(1, { request: "100-0000000003" }),
    );
    const { outcomes, peaks } = await playing(servers(5), demand);
    expect(peaks[0]).toMatchObject({ nodes: 1, cores: 2 });
    const waits = [...outcomes].map(([request, { waitMs }]) => [
      request.slice(0, 14),
      Math.round(waitMs / 1000),
    ]);
    expect(waits).toEqual([
      ["200-0000000001", 60],
      ["200-0000000002", 800],
      ["100-0000000003", 429],
    ]);
    const limited = servers(5, { tenantLimits: new Map([["t", { instances: 1 }]]) });
    const tenant = lines(past, ask(0, { tenant: "t" }), ask(0, { tenant: "t" }));
    expect(
      rowOf(await playing(limited, tenant), await playing(servers(5), tenant), "cloud", null),
    ).toMatchObject({
      today: { wait_p95: 430 },
      planned: { wait_p95: 60 },
    });
  });
});

test("tenants have rows of their own, and a budget lets the requests of its tenant wait", async () => {
  const priced = { ...past, cost: { per_hour: 3_600, currency: "EUR" } };
  const demand = lines(priced, ask(0, { tenant: "t" }), ask(200, { tenant: "t" }), ask(200));
  const budgets = new Map([["t", { amount: 150, currency: "EUR", timezone: "UTC" }]]);
  const [today, planned] = [
    await playing(servers(5), demand),
    await playing(servers(5, { budgets }), demand),
  ];
  const served = { requests: 1, wait_median: 60, wait_p95: 60, refused: 0, unanswered: 0 };
  expect(compare(today, planned).tenants).toEqual([
    { tenant: null, today: served, planned: served },
    {
      ...{ tenant: "t", today: { ...served, requests: 2 } },
      planned: { ...served, requests: 2, unanswered: 1 },
    },
  ]);
});

test("what a launcher lived through is played as it was: the waits of a busy day, from its journal alone", async () => {
  const world = new World({
    latency: {
      create: { minMs: 500, maxMs: 3_000 },
      boot: { minMs: 40_000, maxMs: 90_000 },
      delete: { minMs: 2_000, maxMs: 20_000 },
      read: { minMs: 0, maxMs: 0 },
    },
  });
  const { launcher, journal } = await world.start("a", servers(4));
  const book = new DemandBook();
  journal.write = ({ event, request = null, node = null, facts }) =>
    book.event({ at: world.clock.now(), event, request, node, facts });
  const user = new PlayedUser(world.other, world.clock, seededRandom(3));
  launcher.view.onEvent((event) => {
    if (event.type === "request") user.onRequest(event.id, event.after?.record);
  });
  await world.settle(user.prepare());
  const random = seededRandom(7);
  for (let count = 0; count < 150; count++) {
    await world.run(-Math.log(1 - random.float()) * 170_000);
    const labels = random.float() < 0.8 ? ["small"] : ["large", "small"];
    const at = world.clock.now() / 1000;
    user.ask({ request: `200-${count}`, at, labels }, 60_000 + random.float() * 800_000);
  }
  while (user.waiting > 0) await world.run(60_000);
  await world.run(1_200_000);
  const lived: Played = { outcomes: user.outcomes(), peaks: [], hours: [], assumed: [] };
  const played = await play({
    config: servers(4),
    demand: book.demand(),
    seed: 1,
    driverOf: () => installed.fake,
  });
  expect(played.assumed).toEqual([]);
  const { today, planned } = rowOf(lived, played, "cloud", "small")!;
  expect(planned.requests).toBe(150);
  console.log(
    `median ${today.wait_median} s, played ${planned.wait_median} s; 95 % ${today.wait_p95} s, ${planned.wait_p95} s`,
  );
  expect(Math.abs(planned.wait_median! / today.wait_median! - 1)).toBeLessThan(0.1);
  expect(Math.abs(planned.wait_p95! / today.wait_p95! - 1)).toBeLessThan(0.1);
});

test("a label that goes is refused, and those requests are named", async () => {
  const demand = lines(past, ask(0), ask(7, { labels: ["large"], request: "100-0000000009" }));
  const small = fakeProvider(
    "cloud",
    {},
    { labels: [{ name: "small", "cloud-image": "image", "flavor-name": "f" }] },
  );
  const [today, planned] = [
    await playing(servers(5), demand),
    await playing(launcherConfig([small]), demand),
  ];
  expect(compare(today, planned).lost).toEqual([`100-0000000009@${START + 7}`]);
  expect(rowOf(today, planned, null, "large")).toMatchObject({
    today: { refused: 0 },
    planned: { refused: 1 },
  });
});

test("offerings are bought by the prices of the file", async () => {
  const limited = (most: number) =>
    launcherConfig([
      fakeProvider(
        "cloud",
        { prices: { spot: 0.03, fixed: 0.1 } },
        {
          labels: [
            {
              ...{ name: "small", "cloud-image": "image", "flavor-name": "fixed" },
              offerings: [{ "max-price": most }, { "flavor-name": "spot", "max-price": most }],
            },
          ],
        },
      ),
    ]);
  const demand = lines(past, ask(0));
  const row = rowOf(
    await playing(limited(0.05), demand),
    await playing(limited(0.02), demand),
    "cloud",
    "small",
  );
  expect(row).toMatchObject({ today: { requests: 1 }, planned: { requests: 0 } });
});

test("hosts of the configuration are handed out one after another", async () => {
  const hosts = (...names: readonly string[]) =>
    launcherConfig([
      staticProvider(
        names.map((name) => ({ name, labels: "small", username: "u" })),
        "lab",
      ),
    ]);
  const demand = lines(ask(0), ask(0));
  const row = rowOf(
    await playing(hosts("a", "b"), demand),
    await playing(hosts("a"), demand),
    "lab",
    "small",
  );
  expect(row).toMatchObject({ today: { wait_p95: 0, peak_nodes: 2 } });
  expect(row!.planned.wait_p95).toBeGreaterThanOrEqual(300);
});

test("slots of backing nodes, slivers too, and nodes that boot diskimages", async () => {
  for (const label of [{ "host-key-checking": true }, ISOLATED]) {
    const demand = lines(
      { ...past, label: "large" },
      ...[0, 0, 0].map((at) => ask(at, { labels: ["slice"] })),
    );
    const { outcomes, peaks } = await playing(config(label), demand);
    expect([...outcomes.values()].map(({ result, provider }) => [result, provider])).toEqual(
      Array(3).fill(["served", "slicer"]),
    );
    // Two slots each.
    expect(peaks).toContainEqual(expect.objectContaining({ provider: "metal", label: "large", nodes: 2 }));
  }
  const labels = [{ name: "small", diskimage: "noble", "flavor-name": "f" }];
  const images = fakeProvider("cloud", { diskimages: [{ name: "noble" }] }, { labels });
  const { outcomes } = await playing(launcherConfig([images]), lines(past, ask(0)));
  expect([...outcomes.values()]).toMatchObject([{ result: "served", waitMs: 60_000 }]);
});

describe("demand", () => {
  test("journals of two launchers and a file: each request and each node once", () => {
    const book = new DemandBook();
    const node = "0000000007";
    const asked = { labels: ["small", "small"], created: START, tenant: "t", relative_priority: 2 };
    const event = (name: string, facts: object, at = START * 1000) => ({
      at,
      event: name,
      request: name.startsWith("request") ? "100-0000000001" : null,
      node: name.startsWith("node") ? node : null,
      facts: facts as Record<string, unknown>,
    });
    book.event(event("request.declined", { asked, pools: ["p"], reason: "no", state: "requested" }));
    const other = new DemandBook();
    other.event(event("request.accepted", { asked, provider: "cloud" }));
    other.event(
      event("node.ready", { provider: "cloud", pool: "main", label: "small", ms: 61_000, resources: null }),
    );
    other.event(event("request.fulfilled", { nodes: [node], ms: 61_000 }));
    other.event(event("node.deleting", {}, 5_000));
    other.event(event("node.deleted", {}, 9_000));
    // A request of a launcher itself is no demand.
    other.event({ ...event("request.accepted", { provider: "cloud" }), request: "900-0000000002" });
    const { requests, nodes } = other.demand();
    book.read("other.jsonl", lines(...requests, ...nodes));
    book.event(event("node.returned", { ms: 300_000 }));
    const merged = book.demand();
    expect(merged.requests).toEqual([
      {
        request: "100-0000000001",
        at: START,
        labels: ["small", "small"],
        tenant: "t",
        relative_priority: 2,
        nodes: [node],
      },
    ]);
    expect(merged.nodes).toEqual([
      { node, provider: "cloud", pool: "main", label: "small", launched: 61, used: 300, deleted: 4 },
    ]);
    expect(book.demand(START + 1).requests).toEqual([]);
  });

  test.each([
    ["nonsense", /^d:1: .*JSON.*; a line is a request/],
    [lines(ask(0), { ...ask(0), labels: [] }), /^d:2: labels: has 0 entries, but must have at least 1; /],
    [lines({ ...ask(0), lables: 1 }), /^d:1: .*lables/],
    [lines({ at: "yesterday", labels: ["x"] }), /^d:1: at: is "yesterday", /],
  ])("a line that makes no sense is named: %s", (text, why) => {
    const read = () => new DemandBook().read("d", text);
    expect(read).toThrow(DemandError);
    expect(read).toThrow(why);
  });
});
