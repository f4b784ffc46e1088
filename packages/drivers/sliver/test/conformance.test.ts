import { driverConformance } from "@nodeyard/driver-testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Machine } from "../../../../testing/slivers/index.ts";
import { sliverDriver } from "../src/index.ts";
import { sliverRig } from "./rig.ts";

// A real sliverd whose slivers are in memory: what they are made of is no matter of the contract.
describe("sliver", () => {
  const machine = new Machine();
  beforeAll(() => machine.start());
  afterAll(() => machine.stop());
  driverConformance("sliver", sliverDriver, () => sliverRig(machine), { describe, test, expect });
});
