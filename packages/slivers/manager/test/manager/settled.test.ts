import { seededRandom, sleep } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { POLICIES } from "../../src/core/profiles.ts";
import { reportOf } from "../../src/manager/report.ts";
import { incoming, NAMES } from "../core/arbitrary.ts";
import { Rig } from "./rig.ts";

const SEEDS = 20;
const STEPS = 150;

test.each(Array.from({ length: SEEDS }, (_, at) => at + 1))(
  "what is called settled is so, whenever it is looked at while steps take their time: seed %i",
  async (seed) => {
    const rig = new Rig();
    const random = seededRandom(seed);
    const below = (limit: number) => Math.floor(random.float() * limit);
    // A look takes as long as a step, so that one ends within the other.
    rig.machine.disturb = (_step, _ref, signal) => sleep(rig.clock, below(20), signal);
    const { inspect } = rig.machine;
    rig.machine.inspect = async () => {
      const seen = await inspect.call(rig.machine);
      await sleep(rig.clock, below(20));
      return seen;
    };
    await rig.start();
    // Without a store nothing is taken over before it is known what is on the machine.
    await rig.pass(20);
    let [settled, open] = [0, 0];
    for (let step = 1; step <= STEPS; step++) {
      if (random.float() < 0.4) {
        const given = () => ({ ...POLICIES.r0.defaults, cpuCap: 100 * (1 + below(3)) });
        await rig.deliver(
          step,
          NAMES.slice(0, 3).map((name) => incoming(name, step, { rspec: given() })),
        );
      }
      await rig.pass(1 + below(15));
      for (const one of reportOf(rig.manager).slivers) {
        open += one.settled === true ? 0 : 1;
        if (one.settled !== true) continue;
        settled += 1;
        const made = rig.machine.made.get(one.index!);
        const wanted = rig.state.records.get(one.name)!.rspec;
        expect(made?.phase).toBe("running");
        expect(made?.applied?.effective.cpuCap).toBe(wanted.cpuCap);
      }
    }
    expect(Math.min(settled, open), "both are seen").toBeGreaterThan(10);
    await rig.pass(60_000);
    expect(reportOf(rig.manager).slivers.map((one) => one.settled)).toEqual([true, true, true]);
    await rig.kill();
  },
);
