import { describe, expect, test } from "vitest";
import { POLICIES } from "../../src/core/profiles.ts";
import { withLocal } from "../../src/core/record.ts";
import { incoming } from "../core/arbitrary.ts";
import { Rig } from "./rig.ts";

const HOUR = 3_600_000;
const { defaults } = POLICIES.r0;

/** Ada lends 500 of her CPU guarantee to bob until `after` seconds from now. */
async function lending(after: number): Promise<Rig> {
  const rig = new Rig({ heartbeat: HOUR });
  await rig.start();
  // So that it ends between two heartbeats.
  await rig.pass(2200);
  const until = Math.floor(rig.clock.now() / 1000) + after;
  await rig.deliver(1, [
    incoming("ada", 1, { rspec: { ...defaults, cpuGuarantee: 1000 } }),
    incoming("bob", 1, { rspec: { ...defaults, cpuGuarantee: 100 } }),
  ]);
  const loans = [{ to: "bob", resource: "cpuGuarantee" as const, amount: 500, until }];
  await rig.manager.change((state) => ({ state: withLocal(state, "ada", { loans }), result: 0 }));
  await rig.settle();
  expect(guarantees(rig)).toEqual([500, 600]);
  rig.machine.log.length = 0;
  return rig;
}

const guarantees = (rig: Rig) =>
  [...rig.machine.made.values()].map(({ applied }) => applied!.effective.cpuGuarantee);

/** Looks at the machine while `ms` pass. */
async function looks(rig: Rig, ms: number): Promise<number> {
  const before = rig.manager.sequence;
  await rig.pass(ms);
  return rig.manager.sequence - before;
}

describe("what ends by its time", () => {
  test("a loan, within a second, and who borrowed gives back first", async () => {
    const rig = await lending(4);
    await rig.pass(3700);
    expect(guarantees(rig)).toEqual([500, 600]);
    await rig.pass(1000);
    expect(guarantees(rig)).toEqual([1000, 100]);
    expect(rig.machine.log).toEqual(["configure 2:2", "configure 1:1"]);
    // It is still in the list, and no reason to wake up.
    expect(await looks(rig, 30_000)).toBeLessThan(5);
  });

  test("a sliver, within a second", async () => {
    const rig = new Rig({ heartbeat: HOUR });
    await rig.start();
    const now = Math.floor(rig.clock.now() / 1000);
    await rig.deliver(1, [
      incoming("ada", 1, { expiresAt: now + 4 }),
      incoming("bob", 1, { expiresAt: now + 7 }),
      incoming("cyd", 1),
    ]);
    await rig.pass(5000);
    expect(rig.found).toEqual(["bob:running", "cyd:running"]);
    await rig.pass(3000);
    expect(rig.found).toEqual(["cyd:running"]);
    expect(await looks(rig, 30_000)).toBeLessThan(5);
  });

  test("a loan, by a clock that is trusted, however it moves meanwhile", async () => {
    // By as much as is believed at once: the end is later by that much.
    const back = await lending(4);
    back.clock.jump(-3000);
    expect(await looks(back, 5500)).toBeLessThan(5);
    expect(guarantees(back)).toEqual([500, 600]);
    await back.pass(2500);
    expect(guarantees(back)).toEqual([1000, 100]);
    // By more: what was believed goes on until the new time has lasted a minute, in either direction.
    const far = await lending(1800);
    far.clock.jump(HOUR);
    expect(await looks(far, 50_000)).toBeLessThan(8);
    expect(guarantees(far)).toEqual([500, 600]);
    expect(await looks(far, 30_000)).toBeLessThan(8);
    expect(guarantees(far)).toEqual([1000, 100]);
    far.clock.jump(-HOUR);
    expect(await looks(far, 80_000)).toBeLessThan(12);
    expect(guarantees(far)).toEqual([500, 600]);
  });

  test("a store that cannot be written when the time has come is tried again at the heartbeat", async () => {
    const rig = new Rig();
    await rig.start();
    await rig.deliver(1, [incoming("ada", 1, { expiresAt: rig.clock.now() / 1000 + 4 })]);
    const { create } = rig.files;
    rig.files.create = () => Promise.reject(new Error("ENOSPC"));
    expect(await looks(rig, 25_000)).toBeLessThan(6);
    rig.files.create = create;
    await rig.pass(10_000);
    expect(rig.found).toEqual([]);
  });
});
