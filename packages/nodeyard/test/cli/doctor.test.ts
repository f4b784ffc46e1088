import { afterAll, beforeAll, expect, test } from "vitest";
import { fakeConfig, type Running, Site } from "./nodeyard.ts";

interface Diagnosis {
  readonly check: string;
  readonly ok: boolean;
  readonly text: string;
}

let site: Site;
let up: Running;
beforeAll(async () => {
  site = new Site(fakeConfig());
  up = await site.up();
});
afterAll(() => site.close());

async function doctor() {
  const { code, out } = await site.run("-c", site.config, "doctor", "--json");
  const found = JSON.parse(out) as Diagnosis[];
  // The exit code is that of the worst line.
  expect(code).toBe(found.every(({ ok }) => ok) ? 0 : 1);
  return Object.fromEntries(found.map(({ check, ok, text }) => [check, { ok, text }]));
}

test("doctor: what works is ok, and what does not says what to do; top: what there is", async () => {
  expect(await doctor()).toMatchObject({
    configuration: { ok: true, text: site.config },
    process: { ok: true, text: "ready" },
    tree: { ok: true },
    clock: { ok: true, text: expect.stringMatching(/ s (behind|ahead of) the tree's$/) },
    launchers: { ok: true, text: expect.stringMatching(/^1 pool on /) },
    clouds: { ok: true, text: "1 providers" },
  });
  const { out } = await site.run("-c", site.config, "doctor");
  expect(out).toMatch(/^ok {5}configuration {2}\S+nodepool\.yaml\n/);

  await site.json("request", "small:2", "--wait");
  await site.json("request", "large:5");
  expect(await site.json("top", "--once")).toEqual({
    providers: { "fake-cloud": { "in-use": 2 } },
    requests: { requested: 1 },
    oldest_age: expect.any(Number),
    leases: { granted: 1, waiting: 1 },
  });
  const { out: table } = await site.run("top", "--once");
  expect(table).toMatch(/\| fake-cloud \| 0 .*\| 2 +\|\n/);
  expect(table).toMatch(
    /\nrequests: 1 requested; the oldest waits for \d\d:\d\d:\d\d:\d\d\nleases: 1 (granted|waiting), 1 \w+\n$/,
  );

  await up.kill("SIGKILL");
  site.write(`${fakeConfig()}unheard-of: 1\n`);
  const broken = await doctor();
  expect(broken).toMatchObject({
    configuration: { ok: false, text: expect.stringContaining("config-validate --strict") },
    process: { ok: false, text: expect.stringContaining("start the daemon") },
    tree: { ok: false, text: expect.stringContaining("nodeyard up") },
  });
  expect(broken.clock).toBeUndefined();
});
