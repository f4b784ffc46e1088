import { describe, expect, test } from "vitest";
import { ATTACKS, KEPT, neighbours, SEND } from "./machine/neighbours.ts";
import { whyNot } from "./machine/rig.ts";

describe.skipIf(whyNot() !== undefined)("the neighbour of a flood", { timeout: 180_000 }, () => {
  const kept = neighbours();

  test("keeps the network that it was promised", async () => {
    expect(await kept([ATTACKS.flood], SEND, KEPT)).toBeGreaterThan(KEPT);
  });
});
