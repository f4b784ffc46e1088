import { adapterDriver } from "@nodeyard/driver";
import { driverConformance } from "@nodeyard/driver-testkit";
import { describe, expect, test } from "vitest";
import { type FakeCloud, type FakeKnobs, fakeConfig, INSTANT } from "../../src/index.ts";
import { contextFor, type FakeRig, fakeRig, providerConfig } from "../rig.ts";
import { FakeAdapter, mapError } from "./fake-adapter.ts";

const kit = { describe, test, expect };
const capabilities = { launches: true, inventory: false, probes: false, tags: true };

const SLOW: FakeKnobs = {
  ...INSTANT,
  seed: 12,
  latency: {
    create: { minMs: 200, maxMs: 4_000 },
    boot: { minMs: 1_000, maxMs: 20_000 },
    delete: { minMs: 100, maxMs: 2_000 },
    read: { minMs: 10, maxMs: 500 },
  },
};
const LAGGING: FakeKnobs = { ...SLOW, seed: 13, consistencyDelayMs: 8_000 };
const FAULTY: FakeKnobs = {
  ...LAGGING,
  seed: 14,
  errors: { create: 0.2, delete: 0.2, find: 0.2, list: 0.2 },
  faults: { ...INSTANT.faults, createFailsWithExternalId: 1, neverActive: 0, endsInError: 2, deleteFails: 1 },
};

/** The same cloud as the fake driver's, reached through an adapter of state machines. */
async function adapterRig(knobs: FakeKnobs, resumes: boolean): Promise<FakeRig> {
  const { denyRemoval: _, emptyList: __, ...rig } = await fakeRig(knobs);
  const cannot = {
    ...rig.cannot,
    denyRemoval: "whether a deletion was believed is up to an adapter's own state machine",
    emptyList:
      "an adapter has no question but its list; deletions go by the stored id, and a launcher has its brake",
  };
  const config = providerConfig(knobs);
  const openOn = (cloud: FakeCloud) => (installation: string) =>
    adapterDriver({
      name: "fake-machines",
      config: fakeConfig,
      adapter: (_config, context) => new FakeAdapter(cloud, context, resumes),
      listLagMs: knobs.consistencyDelayMs,
      rate: () => 50,
      mapError,
    }).open(config, contextFor(rig.clock, installation));
  return { ...rig, cannot, open: openOn(rig.cloud), openElsewhere: openOn(rig.far) };
}

for (const [name, knobs] of Object.entries({ INSTANT, SLOW, LAGGING, FAULTY })) {
  for (const resumes of [true, false]) {
    const how = resumes ? "resumes" : "makes anew";
    driverConformance(`adapter, ${name}, ${how}`, { capabilities }, () => adapterRig(knobs, resumes), kit);
  }
}
