import { computeLimits } from "../../src/core/limits.ts";
import { configOf, type SliverConfig } from "../../src/core/plan.ts";
import { POLICIES } from "../../src/core/profiles.ts";
import type { BackEnd } from "../../src/isolation/contract.ts";

/** A machine for one test. */
export interface ConformanceRig {
  readonly backEnd: BackEnd;
  /** Image that slivers are made from, where the back end needs one. */
  readonly image?: string;
  /** A public key that may log in. */
  readonly key?: string;
  /** A new back end on the same machine, as after a restart of the manager. */
  restart(): Promise<BackEnd>;
  /** Whatever changes when the sliver is started anew: the number of its first process, say. */
  life?(index: number): Promise<unknown>;
  /** Whether the processes of the first incarnation at this index are suspended. */
  suspended(index: number): Promise<boolean>;
  /** What slivers left on the machine: processes, mounts, cgroups, users, interfaces, rules, files. */
  leftovers(): Promise<readonly string[]>;
  stop(): Promise<void>;
}

interface Matchers {
  toBe(value: unknown): void;
  toEqual(value: unknown): void;
  toMatchObject(value: object): void;
  toBeUndefined(): void;
  readonly not: Matchers;
  readonly rejects: { toThrow(): Promise<void> };
}

/** The test runner's own functions; vitest's fit. */
export interface ConformanceKit {
  describe(name: string, body: () => void): void;
  test(name: string, body: () => Promise<void>): void;
  expect(value: unknown): Matchers;
}

/** A configuration of a small sliver. */
export function sampleConfig(
  index: number,
  incarnation: number,
  { image, key }: { readonly image?: string; readonly key?: string },
): SliverConfig {
  const name = ["zero", "one", "two", "three"][index] ?? `sliver${index}`;
  const rspec = { ...POLICIES.v2.defaults, memoryCap: 65_536, pids: 64, disk: 65_536 };
  const record = {
    name,
    stamp: { epoch: 1, number: 1 },
    generation: 7,
    kind: "sliver" as const,
    instantiation: "plc-instantiated" as const,
    keys: key === undefined ? [] : [key],
    ...(image === undefined ? {} : { image }),
    initscript: "",
    delegations: [],
    rspec,
    local: { incarnation, index, loans: [] },
  };
  const limits = computeLimits(new Map([[name, rspec]]), { cpu: 1000, link: 1_000_000_000 }).get(name)!;
  return configOf(record, index, rspec, limits, undefined);
}

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

  const bringUp = async (backEnd: BackEnd, config: SliverConfig, signal: AbortSignal) => {
    await backEnd.create(config, signal);
    await backEnd.configure(config, signal);
    await backEnd.start(config, signal);
  };

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
        await bringUp(backEnd, config, signal);
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
        await bringUp(backEnd, config, signal);
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
      "a running sliver becomes that of another name, generation and disk without a restart, also for a new back end",
      on(async (backEnd, rig, signal) => {
        const config = sampleConfig(1, 1, rig);
        const spare = { ...config, name: "spare.1", generation: 0, keys: [], digest: "spare" };
        await backEnd.create(spare, signal);
        await backEnd.configure(spare, signal);
        await backEnd.start(spare, signal);
        const life = await rig.life?.(1);
        expect(await at(backEnd, 1, signal)).toMatchObject({ name: "spare.1", generation: 0 });
        expect((await at(backEnd, 1, signal))?.outdated).toBeUndefined();
        const effective = { ...config.effective, disk: 2 * config.effective.disk };
        await backEnd.configure({ ...config, effective }, signal);
        const now = {
          name: "one",
          generation: 7,
          phase: "running",
          applied: { digest: config.digest, effective },
        };
        for (const one of [backEnd, await rig.restart()]) expect(await at(one, 1, signal)).toMatchObject(now);
        expect(await rig.life?.(1)).toEqual(life);
      }),
    );

    test(
      "a held sliver is suspended where it is, also by a new back end, which lets it go on, and is ended as any other",
      on(async (backEnd, rig, signal) => {
        const config = sampleConfig(1, 1, rig);
        await bringUp(backEnd, config, signal);
        const life = await rig.life?.(1);
        const held = { ...config, held: true, digest: "held" };
        for (const _ of [1, 2]) await backEnd.configure(held, signal);
        expect(await at(backEnd, 1, signal)).toMatchObject({ phase: "running", applied: { digest: "held" } });
        expect(await rig.suspended(1)).toBe(true);
        const again = await rig.restart();
        await again.configure({ ...held, digest: "held, with other amounts" }, signal);
        expect(await rig.suspended(1)).toBe(true);
        await again.configure(config, signal);
        expect(await rig.suspended(1)).toBe(false);
        expect(await rig.life?.(1)).toEqual(life);
        await again.configure(held, signal);
        await again.stop(config, signal);
        expect((await at(again, 1, signal))?.phase).toBe("stopped");
        await again.configure(config, signal);
        await again.start(config, signal);
        expect(await rig.suspended(1)).toBe(false);
        await again.configure(held, signal);
        expect(await rig.suspended(1)).toBe(true);
        await again.destroy(config, signal);
        expect(await again.inspect(signal)).toEqual([]);
      }),
    );

    test(
      "a console, if there is one, is that of the incarnation, stays while the sliver is stopped, and goes with it",
      on(async (backEnd, rig, signal) => {
        if (backEnd.console === undefined) return;
        const config = sampleConfig(1, 1, rig);
        expect(await backEnd.console(config)).toBe(null);
        await bringUp(backEnd, config, signal);
        expect((await backEnd.console(config))?.length).not.toBe(0);
        expect(await backEnd.console({ index: 1, incarnation: 2 })).toBe(null);
        await backEnd.stop(config, signal);
        expect(typeof (await backEnd.console(config))).toBe("string");
        await backEnd.destroy(config, signal);
        expect(await backEnd.console(config)).toBe(null);
      }),
    );

    test(
      "a copy of a cache begins empty or as what the last sliver left that ended well; no other sliver leaves anything",
      on(async (backEnd, rig, signal) => {
        if (backEnd.caches === undefined || backEnd.changeCache === undefined) return;
        const volume = {
          name: "build",
          path: "/cache/build",
          size: 16_384,
          key: ["lab", "acme", "small"],
          commit: "success" as const,
        };
        const of = (index: number, some: Partial<typeof volume> = {}) => ({
          ...sampleConfig(index, 20 + index, rig),
          volumes: [{ ...volume, ...some }],
        });
        const well = (config: ReturnType<typeof of>): SliverConfig => ({
          ...config,
          digest: "well",
          volumes: config.volumes.map((one) => ({ ...one, commit: "at-end" })),
        });
        const began = async (index: number) => (await at(backEnd, index, signal))?.volumes?.[0];
        await bringUp(backEnd, of(1), signal);
        expect((await began(1))?.why).not.toBeUndefined();
        await backEnd.destroy(of(1), signal);
        expect(backEnd.caches()).toEqual([]);
        // Started again: what is in it was left by processes that were killed.
        await bringUp(backEnd, of(1), signal);
        await backEnd.stop(of(1), signal);
        await backEnd.start(of(1), signal);
        await backEnd.configure(well(of(1)), signal);
        await backEnd.destroy(of(1), signal);
        expect(backEnd.caches()).toEqual([]);
        for (const index of [1, 2]) await bringUp(backEnd, of(index), signal);
        for (const index of [1, 2]) {
          await backEnd.configure(well(of(index)), signal);
          await backEnd.destroy(of(index), signal);
        }
        expect(backEnd.caches()).toMatchObject([
          { name: "build", lost: 1, hits: 0, by: "two", pinned: false },
        ]);
        await bringUp(backEnd, of(3), signal);
        await bringUp(backEnd, of(1, { key: ["lab", "umbrella", "small"] }), signal);
        expect((await began(3))?.why).toBeUndefined();
        expect((await began(1))?.from).toBeUndefined();
        const again = await rig.restart();
        await again.inspect(signal);
        const [{ id } = { id: "" }] = again.caches?.() ?? [];
        await backEnd.changeCache(id, "pin", signal);
        expect(backEnd.caches()).toMatchObject([{ id, hits: 1, pinned: true }]);
        await backEnd.changeCache(id, "delete", signal);
        await expect(backEnd.changeCache(id, "unpin", signal)).rejects.toThrow();
        expect(backEnd.caches()).toEqual([]);
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
        await bringUp(backEnd, config, signal);
        const again = await rig.restart();
        // But for what it has sent and used meanwhile.
        const still = async (one: BackEnd) =>
          (await one.inspect(signal)).map(({ sent: _, usage: __, ...rest }) => rest);
        expect(await still(again)).toEqual(await still(backEnd));
      }),
    );
  });
}
