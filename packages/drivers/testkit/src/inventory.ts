import { DriverError } from "@nodeyard/driver";
import type { TestKit, With } from "./rig.ts";

/** Tests for drivers that offer existing machines and do not launch. */
export function noLaunchTests({ test, expect }: TestKit, run: With): void {
  test(
    "create fails with kind configuration; remove, find and list know of no machine",
    run(async (bench) => {
      const provider = await bench.open();
      const { signal } = new AbortController();
      const steps = provider.create(bench.order("0000000001"), { signal, externalId: null });
      const failure = await bench.failure(
        (async () => {
          for await (const _ of steps);
        })(),
      );
      expect(failure.kind).toBe("configuration");
      // The launcher removes nodes of any provider alike, so a removal must not fail.
      await bench.remove(provider, "0000000001", "host");
      expect(await bench.call((own) => provider.find(bench.tag("0000000001"), own))).toBe(undefined);
      expect(await bench.call((own) => provider.list(own))).toEqual([]);
    }),
  );
}

/** Tests of `inventory`, for drivers whose machines exist without a launch, such as static hosts. */
export function inventoryTests({ test, expect }: TestKit, run: With): void {
  test(
    "the inventory names each host once, with pool, labels and slots, the same each time",
    run(async (bench) => {
      const provider = await bench.open();
      const items = provider.inventory();
      expect(items.length).toBeGreaterThan(0);
      expect(new Set(items.map(({ key }) => key)).size).toBe(items.length);
      for (const item of items) {
        expect(item.pool).toBe(bench.rig.pool.name);
        expect(item.labels.length).toBeGreaterThan(0);
        expect(Number.isInteger(item.slots) && item.slots >= 1).toBe(true);
      }
      // The key identifies a host over restarts: an unstable one would make the launcher replace the node records.
      expect(provider.inventory()).toEqual(items);
    }),
  );
}

/** Tests of `probe`, for drivers that have it. */
export function probeTests({ test, expect }: TestKit, run: With): void {
  test(
    "a probe says that a host is alive, and why when it is not, and ends when it is aborted",
    run(async (bench) => {
      const provider = await bench.open();
      const [item] = provider.inventory();
      if (item === undefined) throw new Error("the rig offers no host to probe");
      const { signal } = new AbortController();
      expect((await bench.rig.drive(provider.probe(item, signal))).alive).toBe(true);
      const reason = new DriverError("timeout", "too late");
      expect(await bench.failure(provider.probe(item, AbortSignal.abort(reason)))).toBe(reason);
      // The rest needs a host that can be switched off.
      if (bench.rig.setAlive === undefined) return;
      await bench.rig.setAlive(item, false);
      const probe = await bench.rig.drive(provider.probe(item, signal));
      expect(probe.alive).toBe(false);
      expect(!probe.alive && probe.why.length > 0).toBe(true);
      await bench.rig.setAlive(item, true);
      expect((await bench.rig.drive(provider.probe(item, signal))).alive).toBe(true);
    }),
  );
}
