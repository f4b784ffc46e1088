import type { Provider } from "@nodeyard/driver";
import { describe, expect, test } from "vitest";
import { withMethods } from "./rules/with-methods.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const REQUESTS = 100;
const QUOTA = 40;

/** Counts the machines that are asked for. */
class Meter {
  creates = 0;
  refused = 0;

  readonly wrap = withMethods((inner) => ({
    create: (order, context) => this.#counted(inner.create(order, context)),
  }));

  async *#counted(steps: ReturnType<Provider["create"]>) {
    this.creates++;
    try {
      return yield* steps;
    } catch (error) {
      if ((error as { kind?: string }).kind === "quota") this.refused++;
      throw error;
    }
  }
}

/** A cloud whose listing takes seconds, and lags behind what was done by more. */
const SLOW = {
  latency: {
    create: { minMs: 500, maxMs: 2_000 },
    boot: { minMs: 3_000, maxMs: 8_000 },
    delete: { minMs: 500, maxMs: 2_000 },
    read: { minMs: 2_000, maxMs: 6_000 },
  },
  consistencyDelayMs: 5_000,
};

async function askAll(world: World): Promise<string[]> {
  await world.folder("/nodepool/requests");
  const ids: string[] = [];
  for (let count = 0; count < REQUESTS; count++) ids.push(await world.ask());
  return ids;
}

describe(`${REQUESTS} requests at once, of a cloud whose listing is slow and late`, () => {
  test("two launchers make one machine for each, and none besides", async () => {
    const world = new World(SLOW);
    const meter = new Meter();
    const config = launcherConfig([fakeProvider("cloud", { "launch-retries": 1 })]);
    for (const name of ["a", "b"]) await world.start(name, config, { wrap: meter.wrap });
    const ids = await askAll(world);
    for (const id of ids) await world.fulfilled(id, 300_000);
    expect(meter).toMatchObject({ creates: REQUESTS, refused: 0 });
    expect(world.nodes()).toHaveLength(REQUESTS);
  });

  test(`under a quota of ${QUOTA} as many are made as fit, and the cloud refuses none`, async () => {
    const world = new World({ ...SLOW, quota: { instances: QUOTA } });
    const meter = new Meter();
    const config = launcherConfig([fakeProvider("cloud", { "launch-retries": 1 })]);
    for (const name of ["a", "b"]) await world.start(name, config, { wrap: meter.wrap });
    const ids = await askAll(world);
    const isFulfilled = (id: string) => world.request(id)?.state === "fulfilled";
    await world.until("the quota is used up", () => ids.filter(isFulfilled).length === QUOTA, 300_000);
    await world.run(60_000);
    expect(ids.filter(isFulfilled)).toHaveLength(QUOTA);
    expect(meter).toMatchObject({ creates: QUOTA, refused: 0 });
  });
});
