import { type Random, seededRandom } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { desiredState } from "../../src/api/methods/slivers.ts";
import { POLICIES } from "../../src/core/profiles.ts";
import { compareVersions, type Incoming, withLocal } from "../../src/core/record.ts";
import { sync } from "../../src/core/sync.ts";
import { incoming, NAMES } from "../core/arbitrary.ts";
import { Rig } from "./rig.ts";

const SEEDS = 25;
const STEPS = 40;

/** One node through random steps: documents, calls, back ends that fail or hang, and the power going away. */
class Chaos {
  readonly rig = new Rig({ capacity: { cpu: 2000 } });
  readonly random: Random;
  /** The version that was acknowledged last. */
  acknowledged = 0;
  version = 0;
  failing = 0;

  constructor(seed: number) {
    this.random = seededRandom(seed);
    this.rig.machine.disturb = async (_step, _ref, signal) => {
      if (this.random.float() >= this.failing) return;
      if (this.random.float() < 0.5) throw new Error("as injected");
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    };
  }

  async step(): Promise<void> {
    const kinds = [
      this.deliver,
      this.deliver,
      this.desire,
      this.lend,
      this.powerLoss,
      this.restart,
      this.wait,
      this.faults,
    ];
    await kinds[this.below(kinds.length)]!.call(this);
    // Whatever goes on, what was acknowledged is there.
    expect(this.rig.manager.state.minimum.number).toBeGreaterThanOrEqual(this.acknowledged);
  }

  document(): Incoming[] {
    this.version += 1;
    return NAMES.filter(() => this.random.float() < 0.7).map((name) =>
      incoming(name, this.version, {
        generation: Math.floor(this.version / 4),
        instantiation: name < "c" ? "delegated" : "plc-instantiated",
        rspec: { ...POLICIES.r0.defaults, cpuGuarantee: this.below(900), cpuShare: 16 + this.below(64) },
      }),
    );
  }

  async deliver(): Promise<void> {
    const records = this.document();
    await this.rig.deliver(this.version, records);
    this.acknowledged = this.version;
  }

  async desire(): Promise<void> {
    const [name, desired] = [NAMES[this.below(2)]!, this.random.float() < 0.6];
    await this.rig.manager.change((state) => ({ state: desiredState(state, name, desired), result: 0 }));
    await this.rig.settle();
  }

  async lend(): Promise<void> {
    const loans = NAMES.map((to) => ({ to, resource: "cpuShare" as const, amount: this.below(40) }));
    const name = NAMES[this.below(NAMES.length)]!;
    await this.rig.manager.change((state) => ({ state: withLocal(state, name, { loans }), result: 0 }));
    await this.rig.settle();
  }

  async powerLoss(): Promise<void> {
    this.rig.files.failAt = this.rig.files.calls + 1 + this.below(8);
    const records = this.document();
    const answered = await this.rig.deliver(this.version, records).then(
      () => true,
      () => false,
    );
    if (answered) this.acknowledged = this.version;
    await this.rig.kill();
    this.rig.files.powerLoss(this.random);
    await this.rig.start();
  }

  async restart(): Promise<void> {
    await this.rig.start();
  }

  wait(): Promise<void> {
    return this.rig.pass(1 + this.below(200_000));
  }

  async faults(): Promise<void> {
    this.failing = this.random.float() < 0.5 ? 0 : this.random.float() * 0.6;
  }

  below(limit: number): number {
    return Math.floor(this.random.float() * limit);
  }
}

describe("a node through whatever happens", () => {
  test.each(Array.from({ length: SEEDS }, (_, at) => at + 1))("seed %i", async (seed) => {
    const chaos = new Chaos(seed);
    const { rig } = chaos;
    await rig.start();
    for (let step = 0; step < STEPS; step++) await chaos.step();
    chaos.failing = 0;
    await chaos.deliver();
    await rig.pass(7_200_000);

    const { state, options } = rig.manager;
    const expected = [...state.records.values()].filter(
      ({ instantiation, local }) => instantiation === "plc-instantiated" || local.desired === true,
    );
    expect(rig.found).toEqual(expected.map(({ name }) => `${name}:running`).sort());
    for (const { config, applied } of rig.machine.made.values()) {
      const record = state.records.get(config.name)!;
      expect(config).toMatchObject({
        index: record.local.index,
        generation: record.generation,
        incarnation: record.local.incarnation,
      });
      expect(applied?.effective).toEqual(rig.manager.result!.effective.get(config.name));
    }
    expect(sync(state, await rig.machine.inspect(), options.machine, 0).tasks).toEqual([]);
    expect(rig.machine.overlaps).toBe(0);
    expect(compareVersions(state.minimum, { epoch: 0, number: chaos.version })).toBe(0);
    const guarantees = [...state.records.values()].reduce((sum, { rspec }) => sum + rspec.cpuGuarantee, 0);
    expect(guarantees).toBeLessThanOrEqual(2000);
    await rig.kill();
  });
});
