import type { Driver } from "@nodeyard/driver";

export { Between } from "./between.ts";

import { callTests, commonTests, faultTests, lookTests, secretTests } from "./calls.ts";
import { inventoryTests, noLaunchTests, probeTests } from "./inventory.ts";
import { machineTests, removalTests } from "./machines.ts";
import { imageTests, offerTests } from "./offers.ts";
import { ownershipTests } from "./ownership.ts";
import { placeTests } from "./places.ts";
import { Bench, type ConformanceRig, type TestKit } from "./rig.ts";
import { suspensionTests } from "./suspension.ts";

export type { ConformanceRig, TestKit };

/**
 * The test suite that every driver must pass. Call it in the driver's own test file with the runner's `describe`, `test` and
 * `expect`. The capabilities of the driver alone decide which tests apply.
 */
export function driverConformance(
  name: string,
  driver: Pick<Driver, "capabilities">,
  setup: () => Promise<ConformanceRig>,
  kit: TestKit,
): void {
  const run = (body: (bench: Bench) => Promise<void>) => async () => {
    const rig = await setup();
    try {
      await body(new Bench(rig));
    } finally {
      await rig.stop();
    }
  };
  const { launches, inventory, probes, tags } = driver.capabilities;
  kit.describe(`driver conformance: ${name}`, () => {
    commonTests(kit, run, driver);
    if (launches) {
      machineTests(kit, run);
      removalTests(kit, run);
      callTests(kit, run);
      faultTests(kit, run);
      secretTests(kit, run);
      lookTests(kit, run);
      offerTests(kit, run);
      imageTests(kit, run);
      suspensionTests(kit, run);
    } else {
      noLaunchTests(kit, run);
    }
    if (launches && tags) {
      ownershipTests(kit, run);
      placeTests(kit, run);
    }
    if (inventory) inventoryTests(kit, run);
    if (probes) probeTests(kit, run);
  });
}
