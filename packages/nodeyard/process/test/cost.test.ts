import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fakeConfig, type Granted, Site } from "../../cli/test/nodeyard.ts";

interface Story {
  readonly about: {
    readonly cost?: { readonly so_far: number } | readonly object[];
    readonly nodes?: readonly object[];
  };
  readonly pools: readonly { readonly pool: string; readonly facts: object }[];
}

interface TenantRow {
  readonly tenant: string | null;
}

const PRICES = "    prices: {small: 0.25}\n    price-currency: EUR\n";
const BUDGET = `
shares: {tenants: [{name: web, weight: 3}]}
tenant-resource-limits:
  - tenant-name: web
    budget: {amount: 500, currency: EUR, timezone: Europe/Berlin}
`;
const COST = { per_hour: 0.25, currency: "EUR" };

describe("what nodes cost", () => {
  let site: Site;
  let url: string;
  beforeAll(async () => {
    const config = fakeConfig().replace("    cloud: memory\n", `    cloud: memory\n${PRICES}`);
    site = new Site(`${config}\n${BUDGET}`);
    const up = site.start("-c", site.config, "up", "--webapp", "127.0.0.1:0");
    await up.printed("Nodeyard is up");
    await up.printed('"address":"http://');
    url = /"address":"(http:\/\/[^"]+)"/.exec(up.err)![1]!;
  });
  afterAll(() => site.close());
  const get = async (path: string, headers = {}) => (await fetch(url + path, { headers })).text();

  test("explain says it before and after a launch; lists, metrics and the API have it as well", async () => {
    const label = await site.json<Story>("explain", "label", "small");
    expect(label.pools).toEqual([
      expect.objectContaining({ pool: "fake-cloud/main", facts: expect.objectContaining({ cost: COST }) }),
    ]);
    const unpriced = await site.json<Story>("explain", "label", "large");
    expect(unpriced.pools[0]!.facts).not.toHaveProperty("cost");

    const granted = await site.json<Granted>("request", "small:2", "large", "--wait");
    const stories = await Promise.all(granted.nodes.map(({ id }) => site.json<Story>("explain", id)));
    const costs = stories.map(({ about }) => about.cost);
    expect(costs.filter((cost) => cost === undefined)).toHaveLength(1);
    for (const cost of costs)
      if (cost !== undefined) expect(cost).toEqual({ ...COST, so_far: expect.any(Number) });
    expect((await site.run("explain", granted.nodes[0]!.id)).out).toMatch(/cost +per_hour 0.25 EUR so_far/);
    const lease = await site.json<Story>("explain", granted.lease);
    expect(lease.about.nodes!.filter((node) => "cost" in node)).toEqual([
      expect.objectContaining({ label: "small", cost: COST }),
      expect.objectContaining({ label: "small", cost: COST }),
    ]);

    expect(lease.about.cost).toEqual([{ per_hour: 0.5, currency: "EUR", so_far: expect.any(Number) }]);
    expect((await site.run("explain", granted.lease)).out).toMatch(/cost.*per_hour 0.5.*EUR.*so_far/s);

    const figures = await get("/metrics");
    expect(figures).toMatch(/tenant_nodes\{tenant=""\} 3\n/);
    expect(figures).toMatch(/tenant_budget\{tenant="web",currency="EUR"\} 500\n/);
    expect(figures).toMatch(/tenant_spent\{tenant="web",currency="EUR"\} 0\n/);
    expect(figures).toMatch(/provider_cost_per_hour\{provider="fake-cloud",currency="EUR"\} 0\.5\n/);
    expect(figures).toMatch(/label_cost_per_hour\{label="small",currency="EUR"\} 0\.5\n/);
    const { token } = await site.json<{ token: string }>("token", "create", "ci", "--role", "viewer");
    const { items } = JSON.parse(await get("/v1/nodes", { authorization: `Bearer ${token}` })) as {
      items: { label: string[]; cost: unknown }[];
    };
    const tenants = await site.json<readonly TenantRow[]>("list", "--tenants");
    const none = { tenant: null, nodes: 3, weight: 1, load: 3, waiting: 0, budget: null };
    const cost = [{ per_hour: 0.5, currency: "EUR" }];
    expect(tenants).toEqual([
      expect.objectContaining({ ...none, client: null, cost }),
      expect.objectContaining({ ...none, client: expect.stringContaining("@"), cost }),
      expect.objectContaining({
        ...{ tenant: "web", client: null, nodes: 0, weight: 3, load: 0, waiting: 0, cost: [] },
        budget: expect.objectContaining({ amount: 500, currency: "EUR", spent: 0, level: "free" }),
      }),
    ]);
    expect((await site.run("list", "--tenants")).out).toMatch(/web.*\(all\).*3.*0 of 500 EUR/);
    const rest = await get("/v1/tenants?tenant=web", { authorization: `Bearer ${token}` });
    expect(JSON.parse(rest).items).toEqual([tenants.find(({ tenant }) => tenant === "web")]);
    await site.run("release", granted.lease);
    interface Costs {
      readonly rows: readonly { of: string; currency: string | null; hours: number; cost: number | null }[];
    }
    const by = async (key: string) => (await site.json<Costs>("cost", "--by", key)).rows;
    // A node whose record goes between the look at the journal and that at the tree has no end yet.
    await expect.poll(() => site.json("list")).toEqual([]);
    await expect.poll(() => site.json("cost")).toMatchObject({ gone: 0 });
    // Both labels; what has no price has hours alone.
    const labels = await by("label");
    expect(labels.map(({ of, currency }) => [of, currency]).sort()).toEqual([
      ["large", null],
      ["small", "EUR"],
    ]);
    expect((await by("request")).map(({ of }) => of)).toContain(granted.request);
    expect((await by("client"))[0]!.of).toMatch(/@/);
    expect((await site.run("cost", "--by", "provider")).out).toMatch(/fake-cloud.*EUR/);
    expect(items.map(({ label: [name], cost }) => [name, cost]).sort()).toEqual([
      ["large", null],
      ["small", COST],
      ["small", COST],
    ]);
  });
});
