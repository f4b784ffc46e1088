import { describe, expect, test } from "vitest";
import { ATTACKS, COMPUTE, KEPT, NESTED, neighbours, SEND, WITHIN } from "./machine/neighbours.ts";
import { whyNot } from "./machine/rig.ts";

const BOTH = [
  ["CPU", COMPUTE],
  ["network", SEND],
] as const;
/** Every kind of attack, from ten slivers. */
const TEN = Array.from({ length: 10 }, (_, at) => Object.values(ATTACKS)[at % Object.keys(ATTACKS).length]!);

describe.skipIf(whyNot() !== undefined)("the neighbour of attackers", () => {
  const kept = neighbours();

  test.each(Object.entries(ATTACKS))("keeps the CPU that it was promised beside a %s", async (_, attack) => {
    expect(await kept([attack], COMPUTE, KEPT)).toBeGreaterThan(KEPT);
  });

  test("keeps the network that it was promised beside a flood", async () => {
    expect(await kept([ATTACKS.flood], SEND, KEPT)).toBeGreaterThan(KEPT);
  });

  test.each(BOTH)(
    "keeps the %s that it was promised beside ten of all kinds, within 5 percent",
    async (_, work) => {
      expect(await kept(TEN, work, WITHIN)).toBeGreaterThan(WITHIN);
    },
  );
});

describe.skipIf(whyNot() !== undefined)("the neighbour of busy containers", () => {
  const kept = neighbours(true);

  test.each(BOTH)("keeps the %s that it was promised, within 5 percent", async (_, work) => {
    expect(await kept([NESTED, NESTED], work, WITHIN)).toBeGreaterThan(WITHIN);
  });
});
