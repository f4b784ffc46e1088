import { type Driver, DriverError } from "@nodeyard/driver";
import {
  encodeComponent,
  encodeNode,
  encodeStandings,
  newComponent,
  newNode,
  paths,
  STANDINGS,
  standingFact,
} from "@nodeyard/model";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fakeProvider, launcherConfig, until } from "../../../../pool/launcher/test/rig.ts";
import { type ApiRig, ask, startApi } from "../rig.ts";

type Json = Readonly<Record<string, unknown>>;
type Provider = Json & { readonly standings: readonly Json[]; readonly unknown: readonly string[] };

let site: ApiRig;
let asked = 0;
let hasKey = true;
const machine = {
  name: "big-1",
  error: null,
  capacity: { millicores: 4_000 },
  guaranteed: { millicores: 500 },
  uses: { millicores: 350 },
  remarks: ["a new version of image job (sha256:0123456789ab) is on trial: 0 of 2 launches failed"],
  caches: [],
  spares: [{ phase: "running", image: "job", nesting: false }],
  slivers: [
    {
      name: "n1",
      node: "0000000001",
      use: "idle" as const,
      phase: "running",
      doing: null,
      held: false,
      settled: true,
      error: null,
      remarks: ["its memory (64 MiB) was full: the kernel killed 1 process"],
      usage: { memory: 1024 },
      guarantees: { millicores: 500 },
      caps: { millicores: 600 },
      borrowed: { millicores: -300 },
      uses: { millicores: 350, ram: 1 },
      rspec: { cpuCap: 900 },
      effective: { cpuCap: 600 },
      loans: [{ to: "n2", resource: "cpuCap", amount: 300, refused: null }],
    },
  ],
};
const tokens: Record<string, string> = {};

beforeAll(async () => {
  const clouds = [
    fakeProvider("cloud", { "launch-retries": 1, "max-concurrency": 3 }, { "max-servers": 4 }),
    fakeProvider("away"),
  ];
  const around = (fake: Driver): Driver => ({
    ...fake,
    async open(config, context) {
      if (config.name === "away") throw new DriverError("transient", "503 Service Unavailable");
      const provider = await fake.open(config, context);
      // As a provider of the sliver driver offers it.
      const machines = async () => {
        asked++;
        if (!hasKey) throw new DriverError("fatal", "no key");
        return [machine];
      };
      return { ...provider, offers: { ...provider.offers, slivers: { machines } } };
    },
  });
  site = await startApi(launcherConfig(clouds), { knobs: { quota: { instances: 5, cores: 100 } }, around });
  tokens.viewer = await site.token({ name: "viewer", role: "viewer" });
  tokens.operator = await site.token({ name: "operator", role: "operator" });
  tokens.blue = await site.token({ name: "blue", role: "viewer", tenants: ["blue"] });
  const { rig } = site;
  const id = await rig.ask({});
  await until("a node is there", async () => (await rig.request(id))?.state === "fulfilled");
  rig.cloud.faults.createFails = 1;
  // The request itself waits for the other provider, which may open yet.
  await rig.ask({ node_types: ["large"] });
  await until("its launch failed", () => rig.launcher.providers().some(({ errors }) => errors.length > 0));
});
afterAll(() => site[Symbol.asyncDispose]());

const call = (path: string, as = "viewer", method = "GET") =>
  ask(site.url, path, { method, headers: { authorization: `Bearer ${tokens[as]}` } });
const list = async () =>
  new Map(
    (JSON.parse((await call("/v1/providers")).text) as { items: Provider[] }).items.map((one) => [
      one.provider,
      one,
    ]),
  );
const one = async (name: string) => JSON.parse((await call(`/v1/providers/${name}`)).text) as Provider;

test("a provider has its limits, what is used of them, and the last errors of its launches", async () => {
  const known = await until("the failed node is gone", async () => {
    const found = (await list()).get("cloud");
    return JSON.stringify(found?.nodes) === '{"ready":1}' ? found : undefined;
  });
  expect(known).toMatchObject({ launchers: ["host"], unknown: [] });
  expect(known.standings).toMatchObject([
    {
      launcher: "host",
      driver: "fake",
      quota: {
        instances: { limit: 5, used: 1, used_by_others: 0 },
        cores: { limit: 100, used: expect.any(Number), used_by_others: 0 },
      },
      quota_read_at: expect.stringMatching(/Z$/),
      launching: 0,
      max_concurrency: 3,
      calls: null,
      pools: [{ pool: "main", limits: { instances: { limit: 4, used: 1 } }, waiting: 0, paused: false }],
      errors: [{ event: "node.launch-failed", kind: expect.any(String), error: expect.any(String) }],
    },
  ]);
});

test("one that cannot be opened invents no quota", async () => {
  // Nothing is registered for it, and no node is its: the launcher alone knows that it is configured.
  expect((await list()).get("away")).toMatchObject({
    launchers: [],
    standings: [
      {
        quota: {},
        quota_read_at: null,
      },
    ],
  });
});

test("its standing says why it cannot be opened, and what to do", async () => {
  const row = await until("it is failing", async () => {
    const { text } = await call("/v1/standings?kind=provider&standing=failing");
    // While it is being opened again no next try is known.
    return (JSON.parse(text) as { items: Json[] }).items.find(({ next_try }) => next_try !== null);
  });
  expect(row).toMatchObject({
    id: "provider/away",
    cause: "503 Service Unavailable",
    since: expect.any(String),
    next_try: expect.any(String),
    remedy: expect.stringContaining("Correct what the cause names"),
    members: ["host"],
  });
  expect(JSON.parse((await call("/v1/standings", "blue")).text)).toMatchObject({ items: [] });
});

test("what only another launcher knows is asked of it; what that does not say is unknown", async () => {
  const component = newComponent({ hostname: "python", kind: "pool", providerName: "cloud", name: "main" });
  const session = await site.rig.tree.connect();
  await session.create(`${paths.component("pool")}/python-`, encodeComponent(component), {
    ephemeral: true,
    sequential: true,
  });
  await site.rig.another();
  await until("both are seen", async () => (await list()).get("cloud")!.unknown.includes("python"));
  expect(await one("cloud")).toMatchObject({
    standings: [
      { launcher: "host", quota: { instances: { limit: 5, used: 1 } } },
      { launcher: "host", errors: [] },
    ],
    unknown: ["python"],
  });
  await session.close();
});

test("machines of slivers have guarantees, use and loans; unknown ones have the reason", async () => {
  const machines = async (as?: string, query = "") =>
    JSON.parse((await call(`/v1/sliver-machines${query}`, as)).text) as Json;
  // By the launcher itself, for how its machines stand.
  const before = asked;
  expect(await machines("blue")).toEqual({ items: [], unknown: [] });
  expect(asked, "nobody is asked for who may not see it").toBe(before);
  const { name, ...rest } = machine;
  const unknown = { provider: "elsewhere", why: expect.stringContaining("does not serve it") };
  const row = { id: "cloud/big-1", provider: "cloud", machine: name, ...rest };
  const { tree } = site.rig;
  const node = newNode(
    { type: ["arm"], state: "hold", provider: "no-slivers", pool: "main" } as never,
    1_700_000_000,
  );
  await tree.create(`${paths.nodes}/`, encodeNode(node), { sequential: true });
  const answers = standingFact("sliver-machine", "elsewhere/big-2", "good", "sliver-machine.answers", {
    provider: "elsewhere",
  });
  const report = encodeStandings({ hostname: "other", facts: [answers], leftOut: 0 });
  await tree.create(`${STANDINGS}/other`, report);
  await until("both are seen", async () => {
    const { unknown: others } = await machines();
    return (others as readonly Json[]).length > 0 && (await list()).has("no-slivers");
  });
  expect(await machines()).toEqual({ items: [row], unknown: [unknown] });
  hasKey = false;
  expect(await machines("viewer", "?provider=cloud")).toEqual({
    items: [],
    unknown: [{ provider: "cloud", why: expect.stringContaining("no key") }],
  });
  expect(await machines("viewer", "?provider=clod")).toMatchObject({
    code: "api.unknown_value",
    detail: expect.stringContaining("did you mean cloud?"),
  });
});

test("one that left with a node is listed; the node is not deleted by anybody, but can be given up", async () => {
  const values = { state: "ready", provider: "left", externalId: "vm-7", region: "west" } as const;
  const made = await site.rig.tree.create(`${paths.nodes}/`, encodeNode(newNode(values, 1_700_000_000)), {
    sequential: true,
  });
  const at = `/v1/nodes/${made.path.slice(-10)}`;
  const listed = await until("it is seen", async () => (await list()).get("left"));
  expect(listed).toMatchObject({ launchers: [], standings: [], nodes: { ready: 1 } });
  for (const query of ["", "?now=true"]) {
    const refused = await call(`${at}${query}`, "operator", "DELETE");
    expect(refused.status).toBe(409);
    expect(JSON.parse(refused.text)).toMatchObject({
      code: "operation.provider_not_served",
      detail: expect.stringContaining("no launcher serves provider left"),
    });
  }
  expect((await site.rig.tree.get(made.path)).stat.version).toBe(0);
  const forgotten = JSON.parse((await call(`${at}/forget`, "operator", "POST")).text);
  expect(forgotten).toEqual({ provider: "left", server_id: "vm-7", place: "region west" });
  expect(await site.rig.tree.stat(made.path)).toBeUndefined();
});

test("a provider is hidden from clients that are limited to tenants, and an unknown one is not found", async () => {
  expect((await call("/v1/providers/cloud", "blue")).status).toBe(404);
  expect(JSON.parse((await call("/v1/providers", "blue")).text).items).toEqual([]);
  expect((await call("/v1/providers/nowhere")).status).toBe(404);
  expect(await one("away")).toMatchObject({ standings: [{ quota_read_at: null }, { quota_read_at: null }] });
});
