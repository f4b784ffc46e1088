import { execFileSync } from "node:child_process";
import { seededRandom } from "@nodeyard/runtime";
import type { Rspec } from "@nodeyard/sliver-protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import type { SliverConfig } from "../../src/core/plan.ts";
import type { LxcBackEnd } from "../../src/isolation/lxc/edge/lxc-back-end.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { configsOf } from "./machine/slivers.ts";

const STEPS = Number(process.env.NODEYARD_SLIVER_STEPS ?? 100);
const SEED = Number(process.env.NODEYARD_SLIVER_SEED ?? 20261121);
/** Places that steps are made at. */
const PLACES = 4;

describe.skipIf(whyNot() !== undefined)("whatever was done to slivers, nothing is left", () => {
  let real: RealMachine;
  beforeAll(async () => {
    real = await realMachine();
  });
  afterAll(() => real?.stop());

  test(`${STEPS} random steps, seed ${SEED}`, { timeout: patient(60_000 + 4_000 * STEPS) }, async () => {
    const random = seededRandom(SEED);
    const any = (count: number) => Math.floor(random.float() * count);
    let manager: LxcBackEnd = real.backEnd("container");
    let incarnation = 100;
    const live = new Map<number, SliverConfig>();
    const done: string[] = [];
    /** Steps that did not end within what a manager gives them. */
    const tooLate: string[] = [];
    const config = (index: number, some: Partial<Rspec>): SliverConfig => {
      const [one] = configsOf(real.key, { [index]: some });
      const own = { ...one!, incarnation: live.get(index)?.incarnation ?? ++incarnation };
      return { ...own, digest: `${own.incarnation} ${JSON.stringify(some)}` };
    };
    const begin = async (index: number, signal: AbortSignal): Promise<void> => {
      const made = config(index, {});
      live.set(index, made);
      await manager.create(made, signal);
      await manager.configure(made, signal);
      await manager.start(made, signal);
    };
    type Step = (index: number, there: SliverConfig, signal: AbortSignal) => Promise<unknown>;
    const destroy: Step = async (index, there, signal) => {
      await manager.destroy(there, signal);
      live.delete(index);
    };
    const configure: Step = async (index, _, signal) => {
      const some = { cpuShare: 32 + any(64), memoryCap: 65_536 + any(65_536), pids: 30 + any(60) };
      const next = config(index, some);
      live.set(index, next);
      await manager.configure(next, signal);
    };
    const steps: Readonly<Record<string, Step>> = {
      restart: async () => {
        manager = real.backEnd(any(2) === 0 ? "container" : "account");
      },
      kill: async (index, there) => {
        for (const pid of await pidsOf(real, `ny-${index}.${there.incarnation}`)) kill(pid);
      },
      stop: (_, there, signal) => manager.stop(there, signal),
      start: (_, there, signal) => manager.start(there, signal),
      configure,
      lend: configure,
      "lose the rules": async () => {
        execFileSync("nft", ["delete", "table", "inet", "nodeyard-slivers"], { stdio: "ignore" });
      },
      destroy,
      "destroy again": destroy,
    };
    const step = async (index: number): Promise<void> => {
      const abort = new AbortController();
      // Some are given up half way, as if the process of the manager had died.
      if (any(5) === 0) setTimeout(() => abort.abort(new Error("given up")), any(80));
      const there = live.get(index);
      const name = there === undefined ? "create" : Object.keys(steps)[any(Object.keys(steps).length)]!;
      done.push(`${index}: ${name}`);
      const late = setTimeout(() => {
        tooLate.push(`${index}: ${name}`);
        abort.abort(new Error("late"));
      }, patient(60_000));
      await (there === undefined
        ? begin(index, abort.signal)
        : steps[name]!(index, there, abort.signal)
      ).finally(() => clearTimeout(late));
    };
    for (let at = 0; at < STEPS; at += 2) {
      const [one, two] = [1 + any(PLACES), 1 + any(PLACES)];
      const pair = one === two ? [one] : [one, two];
      await Promise.all(pair.map((index) => step(index).catch(() => undefined)));
      const { signal } = new AbortController();
      // Whatever failed: what is found is ours, each once, and what is running has its rules, or counts as not applied.
      const found = await manager.inspect(signal);
      expect(new Set(found.map(({ index }) => index)).size, done.slice(-4).join("; ")).toBe(found.length);
      for (const { index, incarnation: number } of found)
        expect(number, `${index} after ${done.slice(-4).join("; ")}`).toBe(
          live.get(index)?.incarnation ?? number,
        );
    }
    expect(tooLate).toEqual([]);
    const { signal } = new AbortController();
    for (const one of await manager.inspect(signal)) await manager.destroy(one, signal);
    expect(await manager.inspect(signal)).toEqual([]);
    expect(await real.leftovers()).toEqual([]);
  });
});

async function pidsOf(real: RealMachine, mark: string): Promise<number[]> {
  const machine = real.machine();
  await machine.prepare(new AbortController().signal);
  return machine.cgroups.processes(mark);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It went by itself.
  }
}
