import { describe, expect, test } from "vitest";
import { encodeState, seal } from "../../src/store/store.ts";
import { incoming } from "../core/arbitrary.ts";
import { Rig } from "./rig.ts";

const YEAR = 31_536_000_000;
const DAY = 86_400_000;

/** Ada ends in a day, bob in half a year. */
async function aged(): Promise<Rig> {
  const rig = new Rig();
  await rig.start();
  const now = rig.clock.now() / 1000;
  await rig.deliver(1, [
    incoming("ada", 1, { expiresAt: now + DAY / 1000 }),
    incoming("bob", 1, { expiresAt: now + YEAR / 2000 }),
  ]);
  return rig;
}

describe("a clock that is a year ahead", () => {
  test("is not trusted, however often callers make the manager look", async () => {
    const rig = await aged();
    rig.clock.jump(YEAR);
    for (let call = 0; call < 100; call++) {
      rig.manager.requestSync();
      await rig.pass(100);
    }
    expect(rig.manager.clockSuspect).toBe(true);
    expect(rig.found).toEqual(["ada:running", "bob:running"]);
    expect(rig.log.filter((line) => line.startsWith("the clock jumped"))).toHaveLength(1);
  });

  test("at a start ends nothing, and is not trusted before it has lasted a minute", async () => {
    const rig = await aged();
    rig.clock.jump(YEAR);
    await rig.start();
    expect(rig.manager.clockSuspect).toBe(true);
    await rig.pass(50_000);
    expect(rig.manager.now * 1000).toBeLessThan(rig.clock.now() - YEAR / 2);
    // NTP corrects it.
    rig.clock.jump(-YEAR);
    await rig.pass(20_000);
    expect(rig.manager.clockSuspect).toBe(false);
    await rig.pass(DAY / 2);
    expect(rig.found).toEqual(["ada:running", "bob:running"]);
    await rig.pass(DAY / 2);
    expect(rig.found).toEqual(["bob:running"]);
  });

  test("and lasts a minute is trusted; what it ends lasts ten more, in which an operator can correct it", async () => {
    const rig = await aged();
    rig.clock.jump(YEAR);
    await rig.pass(80_000);
    expect(rig.manager.clockSuspect).toBe(false);
    expect(rig.manager.now * 1000).toBeCloseTo(rig.clock.now(), -3);
    expect(rig.found).toHaveLength(2);
    rig.clock.jump(-YEAR);
    await rig.pass(1_200_000);
    expect(rig.found).toHaveLength(2);
    // The right time at last, as after a machine was off for a year.
    rig.clock.jump(YEAR);
    await rig.pass(650_000);
    expect(rig.found).toHaveLength(2);
    await rig.pass(30_000);
    expect(rig.found).toEqual([]);
  });

  test("was stored as trusted: the next start, with the right time, ends nothing by it", async () => {
    const rig = await aged();
    rig.clock.jump(YEAR);
    await rig.pass(80_000);
    rig.clock.jump(-YEAR);
    await rig.start();
    await rig.pass(1_200_000);
    expect(rig.manager.clockSuspect).toBe(false);
    expect(rig.found).toEqual(["ada:running", "bob:running"]);
  });
});

test("a restart within a quarter of an hour trusts the clock, and what has ended meanwhile ends at once", async () => {
  const rig = await aged();
  await rig.pass(DAY - 300_000);
  await rig.kill();
  rig.clock.jump(600_000);
  await rig.start();
  expect(rig.manager.clockSuspect).toBe(false);
  expect(rig.found).toEqual(["bob:running"]);
});

test("the trusted time is stored rarely: an idle day costs fewer than 300 writes", async () => {
  const rig = new Rig();
  await rig.start();
  await rig.list(1, "ada");
  const before = rig.files.calls;
  await rig.pass(DAY);
  // Of each write seven calls.
  expect((rig.files.calls - before) / 7).toBeLessThan(300);
  expect(Math.abs(rig.state.believed * 1000 - rig.clock.now())).toBeLessThan(600_000);
});

test("a store of an earlier version, which has no trusted time: nothing ends within ten minutes of the start", async () => {
  const rig = await aged();
  const { believed: _, ...older } = JSON.parse(encodeState(rig.state));
  await rig.kill();
  for (const name of ["state.0.json", "state.1.json"])
    rig.files.damage(name, seal("node-1", { sequence: 1000, body: JSON.stringify(older) }));
  rig.clock.jump(YEAR);
  await rig.start();
  await rig.pass(550_000);
  expect(rig.found).toEqual(["ada:running", "bob:running"]);
  await rig.pass(60_000);
  expect(rig.found).toEqual([]);
});
