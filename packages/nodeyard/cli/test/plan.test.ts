import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fakeConfig, Site } from "./nodeyard.ts";

interface Figures {
  readonly requests: number;
  readonly wait_median: number | null;
  readonly wait_p95: number | null;
  readonly peak_cores: number;
  readonly refused: number;
  readonly peak_nodes: number;
  readonly idle_hours: number;
  readonly cost: number;
}
interface Planned {
  readonly requests: number;
  readonly tenants: readonly { readonly today: object }[];
  readonly rows: readonly {
    readonly provider: string | null;
    readonly label: string | null;
    readonly today: Figures;
    readonly planned: Figures;
  }[];
  readonly lost: readonly string[];
  readonly assumed: readonly string[];
}

let site: Site;
beforeAll(() => {
  site = new Site(fakeConfig({ latency: "{boot: 100}", minReady: 1 }));
});
afterAll(() => site.close());

const at = (name: string) => join(site.folder, name);
function write(name: string, text: string): string {
  writeFileSync(at(name), text);
  return at(name);
}
const records = (name: string) =>
  readFileSync(at(name), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test("what a real Nodeyard served is read back from its journal, and played on another configuration", async () => {
  const none = await site.run("plan", site.config);
  expect([none.code, none.err]).toEqual([1, expect.stringContaining("there is no journal")]);

  const up = await site.up();
  const granted = JSON.parse((await site.run("request", "small:2", "large", "--wait", "--json")).out);
  expect((await site.run("release", granted.lease)).code).toBe(0);
  await up.printed("node.deleted");
  await up.kill("SIGTERM");

  const { code, err } = await site.run("plan", "--record", at("demand.jsonl"));
  expect([code, err]).toEqual([0, `1 request written to ${at("demand.jsonl")}\n`]);
  const [request, ...nodes] = records("demand.jsonl");
  expect(request).toMatchObject({
    request: expect.stringMatching(/^\d+-\d+$/),
    labels: ["small", "small", "large"],
    nodes: granted.nodes.map(({ id }: { id: string }) => id),
  });
  const ours = nodes.filter(({ node }) => (request!.nodes as string[]).includes(node as string));
  expect(ours).toHaveLength(3);
  for (const node of ours)
    expect(node).toMatchObject({
      provider: "fake-cloud",
      label: expect.stringMatching(/^(small|large)$/),
      launched: expect.any(Number),
      used: expect.any(Number),
      resources: { cores: expect.any(Number), ram: expect.any(Number) },
    });

  // Today's keeps one of each ready. The other one has no pool for large, and a provider whose driver is not installed.
  const fewer = write(
    "fewer.yaml",
    `${fakeConfig({ labels: ["small"] })}
  - {name: ec2, driver: example, pools: [{name: p, max-servers: 2, labels: [{name: small, profile: x}]}]}
`,
  );
  const same = await site.json<Planned>("-c", site.config, "plan", site.config);
  expect(same).toMatchObject({ requests: 1, lost: [], assumed: [] });
  for (const { today, planned } of same.rows) expect(planned).toEqual(today);
  expect(same.tenants).toEqual([
    { tenant: null, today: expect.objectContaining({ requests: 1 }), planned: same.tenants[0]!.today },
  ]);
  expect(same.rows[0]).toMatchObject({
    provider: "fake-cloud",
    label: null,
    today: { requests: 1, refused: 0 },
  });

  const lost = await site.run("-c", site.config, "plan", fewer, "--demand", at("demand.jsonl"));
  expect(lost.code).toBe(1);
  expect(lost.err).toMatch(/^nodeyard: the new configuration does not serve 1 of the requests [^\n]*\n$/);
  expect(lost.out).toMatch(/\| \(nobody\) +\| large +\| 0 -> 1 /);
});

test("a provider whose driver is not installed is planned with, by its limits and durations of the past", async () => {
  const aws = (servers: number) =>
    write(
      `aws-${servers}.yaml`,
      `labels: [{name: small}]
providers:
  - {name: ec2, driver: example, pools: [{name: p, max-servers: ${servers}, labels: [{name: small, profile: x}]}]}
`,
    );
  const file = write(
    "two.jsonl",
    `{"at": "2026-01-31T10:00:00Z", "labels": ["small"], "used": 100}
{"at": "2026-01-31T10:00:00Z", "labels": ["small"], "used": 100}
{"node": "1", "provider": "ec2", "pool": "p", "label": "small", "launched": 30, "deleted": 5, "resources": {"cores": 4}}
`,
  );
  const { rows } = await site.json<Planned>("-c", aws(2), "plan", aws(1), "--demand", file);
  expect(rows).toMatchObject([
    { provider: "ec2", label: null, today: { requests: 2, wait_p95: 30, peak_cores: 8 } },
    { provider: "ec2", label: "small", planned: { wait_median: 30, wait_p95: 165, peak_cores: 4 } },
  ]);
});

test("the spares of the how-to page, on a morning of a made-up week: nobody waits, and nodes are idle", async () => {
  const root = new URL("../../../../", import.meta.url);
  const page = readFileSync(new URL("docs/how-to/be-ready-at-nine.md", root), "utf8");
  const labels = /```yaml\n(.*?)```/s.exec(page)![1]!;
  const rest = `providers:
  - {name: cloud, driver: example, pools: [{name: main, max-servers: 20, labels: [{name: small, profile: x}]}]}
`;
  const today = write("today.yaml", `labels: [{name: small}]\n${rest}`);
  const planned = write("spares.yaml", `${labels}${rest}`);
  const week = readFileSync(new URL("packages/pool/planning/test/week.jsonl", root), "utf8");
  // Its nodes, and Monday until ten.
  const file = write(
    "week.jsonl",
    week
      .split("\n")
      .slice(0, 24 + 45)
      .join("\n"),
  );
  const { rows } = await site.json<Planned>("-c", today, "plan", planned, "--demand", file);
  const row = rows.find(({ label }) => label === "small")!;
  expect(row.today).toMatchObject({ refused: 0, idle_hours: 0 });
  expect(row.today.wait_median).toBeGreaterThan(60);
  expect(row.planned.wait_median).toBe(0);
  expect(row.planned.idle_hours).toBeGreaterThan(0);
  expect(row.planned.cost).toBeGreaterThan(row.today.cost);
});

test("what is asked wrongly", async () => {
  const file = write("one.jsonl", '{"at": 1700000000, "labels": ["small"]}\n');
  const usage = [
    ["plan"],
    ["plan", "x", "--since", "2026-01-31T10:00Z", "--days", "1"],
    ["plan", "x", "--days", "0"],
  ];
  for (const words of usage) expect((await site.run(...words)).code).toBe(2);
  const late = await site.run("plan", site.config, "--demand", file, "--since", "2026-01-31T10:00Z");
  expect([late.code, late.err]).toEqual([1, expect.stringContaining("there is no request in")]);
});
