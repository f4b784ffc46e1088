import { decorate, guard, type Layer, RateLimiter } from "@nodeyard/driver";
import { driverConformance } from "@nodeyard/driver-testkit";
import { describe, expect, test } from "vitest";
import { type FakeKnobs, INSTANT } from "../src/index.ts";
import { fakeRig } from "./rig.ts";

const fake = { capabilities: { launches: true, inventory: false, probes: false, tags: true } };
const kit = { describe, test, expect };

const SLOW: FakeKnobs = {
  ...INSTANT,
  seed: 2,
  latency: {
    create: { minMs: 200, maxMs: 4_000 },
    boot: { minMs: 1_000, maxMs: 20_000 },
    delete: { minMs: 100, maxMs: 2_000 },
    read: { minMs: 10, maxMs: 500 },
  },
};
const LAGGING: FakeKnobs = { ...SLOW, seed: 3, consistencyDelayMs: 8_000 };
const FAULTY: FakeKnobs = {
  ...LAGGING,
  seed: 4,
  errors: { create: 0.2, delete: 0.2, find: 0.2, list: 0.2 },
  faults: { ...INSTANT.faults, createFailsWithExternalId: 1, neverActive: 0, endsInError: 2, deleteFails: 1 },
};

driverConformance("fake, instant", fake, () => fakeRig(INSTANT), kit);
driverConformance("fake, slow", fake, () => fakeRig(SLOW), kit);
driverConformance("fake, lists that lag", fake, () => fakeRig(LAGGING), kit);
driverConformance("fake, faulty", fake, () => fakeRig(FAULTY), kit);
driverConformance("fake, images in a folder", fake, () => fakeRig(INSTANT, { imagesIn: "folder" }), kit);

/** The layers of the SDK change nothing that the contract promises. */
async function layeredRig() {
  const rig = await fakeRig(SLOW);
  const { clock } = rig;
  const limiter = new RateLimiter({ clock, intervalMs: 20 });
  const limited: Layer = async (_name, call, signal) => {
    await limiter.turn(signal);
    return call();
  };
  const config = { name: rig.providerName, driver: "fake" };
  return {
    ...rig,
    open: async (installation: string) =>
      guard(decorate(await rig.open(installation), limited), config, {
        clock,
        log: { debug() {}, info() {}, warn() {}, error() {} },
      }),
  };
}

driverConformance("fake, inside all layers", fake, layeredRig, kit);
