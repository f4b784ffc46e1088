import { describe, expect, test } from "vitest";
import { ATTACKS, COMPUTE, neighbours, SEND, WITHIN } from "./machine/neighbours.ts";
import { whyNot } from "./machine/rig.ts";

/** Every kind of attack, from ten slivers. */
const TEN = Array.from({ length: 10 }, (_, at) => Object.values(ATTACKS)[at % Object.keys(ATTACKS).length]!);

describe.skipIf(whyNot() !== undefined)("the neighbour of ten attackers", { timeout: 400_000 }, () => {
  const kept = neighbours();

  test.each([
    ["CPU", COMPUTE],
    ["network", SEND],
  ])("keeps the %s that it was promised, within 5 %%", async (_, work) => {
    expect(await kept(TEN, work, WITHIN)).toBeGreaterThan(WITHIN);
  });
});
