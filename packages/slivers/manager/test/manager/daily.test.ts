import { expect, test } from "vitest";
import { POLICIES } from "../../src/core/profiles.ts";
import { DAY } from "../../src/core/traffic.ts";
import { reportOf } from "../../src/manager/report.ts";
import { incoming } from "../core/arbitrary.ts";
import { Rig } from "./rig.ts";

const HEARTBEAT = 10_000;
/** KiB a day. */
const BUDGET = 1_000_000;
const rspec = { ...POLICIES.r0.defaults, netDay: BUDGET, netDayThreshold: BUDGET / 2 };

test("who has sent his threshold is slowed down while he runs, also by the next manager, until his day is over", async () => {
  const rig = new Rig();
  await rig.start();
  const records = ["ada", "bob"].map((name) => incoming(name, 1, { rspec }));
  await rig.deliver(1, records);
  const [ada, bob] = [...rig.machine.made.values()].sort((a, b) => (a.config.name < b.config.name ? -1 : 1));
  const ceils = () => [ada, bob].map((one) => one!.applied!.limits.net.ceil);
  const [cap] = ceils();
  expect(ceils()).toEqual([cap, cap]);
  for (const one of [ada, bob]) one!.sent = { cable: one!.config.index, bytes: 0 };
  await rig.pass(HEARTBEAT);

  ada!.sent = { cable: ada!.config.index, bytes: 0.75 * BUDGET * 1024 };
  await rig.pass(HEARTBEAT);
  // A quarter of the budget for all but two heartbeats of the day.
  const [slow, other] = ceils();
  expect(other).toBe(cap);
  expect(slow).toBeGreaterThan((0.25 * BUDGET * 1024 * 8) / DAY / 1.1);
  expect(slow).toBeLessThanOrEqual((0.25 * BUDGET * 1024 * 8) / (DAY - 30));
  const throttled = () => reportOf(rig.manager).slivers.map((one) => one.throttled);
  expect(throttled()).toEqual([
    expect.stringMatching(/^its traffic of the day .*: it sends \d+ kbit\/s at most$/),
    undefined,
  ]);
  expect(rig.machine.log.filter((step) => /^(?:start|stop|create)/.test(step))).toHaveLength(4);

  // What is known survives the manager, and that its cable is another after a restart of the sliver.
  await rig.start();
  ada!.sent = { cable: 99, bytes: 0 };
  await rig.pass(HEARTBEAT);
  expect(ceils()).toEqual([slow, cap]);

  await rig.pass(DAY * 1000);
  expect(ceils()).toEqual([cap, cap]);
});
