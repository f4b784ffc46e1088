import { describe, expect, test } from "vitest";
import { ATTACKS, COMPUTE, KEPT, NESTED, neighbours, SEND, WITHIN } from "./machine/neighbours.ts";
import { whyNot } from "./machine/rig.ts";

describe.skipIf(whyNot() !== undefined)("neighbours of an attacker", { timeout: 180_000 }, () => {
  const kept = neighbours();

  test.each(Object.entries(ATTACKS))(
    "a %s leaves its neighbour the CPU that it was promised",
    async (_, attack) => {
      expect(await kept([attack], COMPUTE, KEPT)).toBeGreaterThan(KEPT);
    },
  );
});

describe.skipIf(whyNot() !== undefined)("the neighbour of busy containers", { timeout: 400_000 }, () => {
  const kept = neighbours(true);

  test.each([
    ["CPU", COMPUTE],
    ["network", SEND],
  ])("keeps the %s that it was promised, within 5 %%", async (_, work) => {
    expect(await kept([NESTED, NESTED], work, WITHIN)).toBeGreaterThan(WITHIN);
  });
});
