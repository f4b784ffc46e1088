import { createOpenstackDriver } from "@nodeyard/driver-openstack";
import { systemClock as clock } from "@nodeyard/runtime";
import { afterEach, beforeAll, expect, test } from "vitest";
import { counted } from "../counted.ts";
import { compile, contextOf, hostOf } from "../rig.ts";
import { OpenstackSite } from "../site.ts";

let site: OpenstackSite;
const { signal } = new AbortController();
const LANES = 16;
const NOBODY = { installation: "rate", provider: "measured", pool: "main", nodeId: "0000000000" };

beforeAll(() => {
  site = OpenstackSite.start("rate");
});
afterEach(() => site.faults({}));

/** Keeps the queue filled by enough callers for this long; returns calls per second. */
async function load(rate: number | undefined, ms: number, others: readonly number[] = []): Promise<number> {
  const { host, counts } = counted(hostOf(site));
  const driver = createOpenstackDriver(host);
  const open = (seconds: number | undefined, name: string) =>
    driver.open(compile({ name, ...(seconds === undefined ? {} : { rate: seconds }) }), contextOf("rate"));
  const providers = [await open(rate, "measured")];
  for (const [index, other] of others.entries()) providers.push(await open(other, `other-${index}`));
  const [provider] = providers;
  counts.reads = 0;
  const started = clock.monotonic();
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      // One listing each.
      while (clock.monotonic() - started < ms) await provider!.find(NOBODY, signal).catch(() => {});
    }),
  );
  const perSecond = (counts.reads * 1_000) / (clock.monotonic() - started);
  for (const one of providers) await one.close();
  return perSecond;
}

test("a rate far below what the server can do is kept: 95 to 100 % of it over a minute", async () => {
  // So low that a server with other work beside it is never what holds calls up: all lanes would have to wait eight seconds for an answer.
  const capacity = await load(undefined, 10_000);
  const wanted = Math.min(capacity / 4, LANES / 8);
  const got = await load(1 / wanted, 60_000);
  process.stderr.write(
    `capacity ${capacity.toFixed(1)}/s, rate ${wanted.toFixed(1)}/s, got ${got.toFixed(2)}/s (${((100 * got) / wanted).toFixed(1)} %)\n`,
  );
  expect(got / wanted).toBeGreaterThanOrEqual(0.95);
  expect(got / wanted).toBeLessThanOrEqual(1.005);
});

test("of several providers on one credential the strictest limit counts for all", async () => {
  const got = await load(0.05, 10_000, [0.5]);
  expect(got).toBeGreaterThan(1.7);
  expect(got).toBeLessThanOrEqual(2.2);
});

test("a server that says 429 is asked less, and as often as before when it has recovered", async () => {
  const before = await load(0.1, 10_000);
  site.faults({
    api: [
      {
        service: "nova",
        method: "GET",
        path: "/servers/detail$",
        status: 429,
        headers: { "Retry-After": 1 },
        rate: 0.5,
      },
    ],
  });
  const during = await load(0.1, 20_000);
  site.faults({});
  const after = await load(0.1, 10_000);
  process.stderr.write(
    `per second: ${before.toFixed(1)}, with half of the answers 429 ${during.toFixed(1)}, afterwards ${after.toFixed(1)}\n`,
  );
  expect(before).toBeGreaterThan(9);
  expect(during).toBeLessThan(before / 2);
  expect(after).toBeGreaterThan(9);
});
