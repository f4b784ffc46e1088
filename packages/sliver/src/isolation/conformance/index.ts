import type { BackEnd } from "../contract.ts";
import type { ConformanceKit, ConformanceRig } from "./rig.ts";
import { sampleConfig } from "./sample.ts";

export type { ConformanceKit, ConformanceRig } from "./rig.ts";
export { sampleConfig } from "./sample.ts";

/**
 * What the manager relies on, for every back end: declare it in the back end's own test file with the runner's
 * `describe`, `test` and `expect`. Each test gets a machine without slivers, and must leave one.
 */
export function backEndConformance(
  name: string,
  setup: () => Promise<ConformanceRig>,
  { describe, test, expect }: ConformanceKit,
): void {
  const on =
    (body: (backEnd: BackEnd, rig: ConformanceRig, signal: AbortSignal) => Promise<void>) => async () => {
      const rig = await setup();
      const { signal } = new AbortController();
      try {
        await body(rig.backEnd, rig, signal);
        for (const one of await rig.backEnd.inspect(signal)) await rig.backEnd.destroy(one, signal);
        expect(await rig.leftovers()).toEqual([]);
      } finally {
        await rig.stop();
      }
    };
  const at = async (backEnd: BackEnd, index: number, signal: AbortSignal) =>
    (await backEnd.inspect(signal)).find((one) => one.index === index);

  describe(`back end conformance: ${name}`, () => {
    test(
      "a life: created, configured, running, stopped, gone",
      on(async (backEnd, rig, signal) => {
        const config = sampleConfig(1, 1, rig);
        await backEnd.create(config, signal);
        expect(await at(backEnd, 1, signal)).toMatchObject({
          index: 1,
          incarnation: 1,
          name: "one",
          generation: 7,
        });
        expect((await at(backEnd, 1, signal))?.phase).not.toBe("running");
        await backEnd.configure(config, signal);
        expect((await at(backEnd, 1, signal))?.applied).toEqual({
          digest: config.digest,
          effective: config.effective,
        });
        await backEnd.start(config, signal);
        expect((await at(backEnd, 1, signal))?.phase).toBe("running");
        await backEnd.stop(config, signal);
        expect((await at(backEnd, 1, signal))?.phase).toBe("stopped");
        await backEnd.start(config, signal);
        await backEnd.destroy(config, signal);
        expect(await at(backEnd, 1, signal)).toBeUndefined();
      }),
    );

    test(
      "every step may be repeated",
      on(async (backEnd, rig, signal) => {
        const config = sampleConfig(1, 1, rig);
        for (const _ of [1, 2]) await backEnd.create(config, signal);
        for (const _ of [1, 2]) await backEnd.configure(config, signal);
        for (const _ of [1, 2]) await backEnd.start(config, signal);
        expect((await at(backEnd, 1, signal))?.phase).toBe("running");
        for (const _ of [1, 2]) await backEnd.stop(config, signal);
        for (const _ of [1, 2]) await backEnd.destroy(config, signal);
        expect(await backEnd.inspect(signal)).toEqual([]);
      }),
    );

    test(
      "create never takes over what another incarnation left",
      on(async (backEnd, rig, signal) => {
        await backEnd.create(sampleConfig(1, 1, rig), signal);
        await expect(backEnd.create(sampleConfig(1, 2, rig), signal)).rejects.toThrow();
        expect((await at(backEnd, 1, signal))?.incarnation).toBe(1);
      }),
    );

    test(
      "an operation for an older incarnation does nothing",
      on(async (backEnd, rig, signal) => {
        const config = sampleConfig(1, 2, rig);
        await backEnd.create(config, signal);
        await backEnd.configure(config, signal);
        await backEnd.start(config, signal);
        await backEnd.destroy({ index: 1, incarnation: 1 }, signal);
        await backEnd.stop({ index: 1, incarnation: 1 }, signal).catch(() => undefined);
        await backEnd.configure(sampleConfig(1, 1, rig), signal).catch(() => undefined);
        const found = await at(backEnd, 1, signal);
        expect(found).toMatchObject({ incarnation: 2, phase: "running" });
        expect(found?.applied?.digest).toBe(config.digest);
      }),
    );

    test(
      "a changed configuration reaches a running sliver without a restart",
      on(async (backEnd, rig, signal) => {
        const config = sampleConfig(1, 1, rig);
        await backEnd.create(config, signal);
        await backEnd.configure(config, signal);
        await backEnd.start(config, signal);
        const life = await rig.life?.(1);
        const effective = { ...config.effective, cpuShare: 64 };
        const next = { ...config, effective, digest: "next" };
        await backEnd.configure(next, signal);
        expect(await at(backEnd, 1, signal)).toMatchObject({
          phase: "running",
          applied: { digest: "next", effective },
        });
        expect(await rig.life?.(1)).toEqual(life);
      }),
    );

    test(
      "slivers are independent, and their accounts differ",
      on(async (backEnd, rig, signal) => {
        const configs = [1, 2, 3].map((index) => sampleConfig(index, 10 + index, rig));
        await Promise.all(configs.map((config) => backEnd.create(config, signal)));
        await Promise.all(configs.map((config) => backEnd.configure(config, signal)));
        await Promise.all(configs.map((config) => backEnd.start(config, signal)));
        await backEnd.destroy(configs[1]!, signal);
        expect((await backEnd.inspect(signal)).map(({ index }) => index).sort()).toEqual([1, 3]);
        expect(new Set([1, 2, 3].map((index) => backEnd.account(index).uid)).size).toBe(3);
        expect(new Set([1, 2, 3].map((index) => backEnd.account(index).user)).size).toBe(3);
      }),
    );

    test(
      "an aborted step settles, and destroy removes what it left",
      on(async (backEnd, rig) => {
        const config = sampleConfig(1, 1, rig);
        const abort = new AbortController();
        const made = backEnd.create(config, abort.signal);
        abort.abort(new Error("enough"));
        await made.catch(() => undefined);
        const { signal } = new AbortController();
        await backEnd.destroy(config, signal);
        expect(await backEnd.inspect(signal)).toEqual([]);
        await backEnd.create(config, signal);
        expect(await at(backEnd, 1, signal)).toMatchObject({ incarnation: 1 });
      }),
    );

    test(
      "what is there is found by a new back end on the same machine",
      on(async (backEnd, rig, signal) => {
        const config = sampleConfig(1, 1, rig);
        await backEnd.create(config, signal);
        await backEnd.configure(config, signal);
        await backEnd.start(config, signal);
        const again = await rig.restart();
        // But for what it has sent meanwhile.
        const still = async (one: BackEnd) => (await one.inspect(signal)).map(({ sent: _, ...rest }) => rest);
        expect(await still(again)).toEqual(await still(backEnd));
      }),
    );
  });
}
