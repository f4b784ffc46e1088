import { describe, expect, test } from "vitest";
import { ATTACKS, COMPUTE, KEPT, neighbours } from "./machine/neighbours.ts";
import { whyNot } from "./machine/rig.ts";

describe.skipIf(whyNot() !== undefined)("neighbours of an attacker", { timeout: 180_000 }, () => {
  const kept = neighbours();

  test.each(Object.entries(ATTACKS))(
    "a %s leaves its neighbour the CPU that it was promised",
    async (_, attack) => {
      expect(await kept([attack], COMPUTE)).toBeGreaterThan(KEPT);
    },
  );
});
