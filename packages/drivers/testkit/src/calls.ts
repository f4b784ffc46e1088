import type { StepContext } from "@nodeyard/driver";
import { DriverError, driverProblem, exceeded, providerProblem } from "@nodeyard/driver";
import { FAULTS, type TestKit, type With } from "./rig.ts";

/** Tests of lists, amounts, errors and closing. */
export function callTests({ test, expect }: TestKit, run: With): void {
  test(
    "a list is complete, or it rejects",
    run(async (bench) => {
      const provider = await bench.open();
      const ids = ["0000000001", "0000000002", "0000000003"];
      for (const id of ids) await bench.create(provider, id);
      await bench.rig.settle();
      const listed = await bench.call((signal) => provider.list(signal));
      const nodes = listed.filter(({ type }) => type === "instance").map(({ tag }) => tag?.nodeId ?? "");
      // More than one, because a driver that reads the first page only would pass with one.
      expect(nodes.sort()).toEqual(ids);
      if (bench.rig.breakList === undefined) return;
      // An empty result would look like a cloud without machines.
      await bench.rig.breakList();
      const failure = await bench.failure(provider.list(new AbortController().signal));
      expect(failure).toBeInstanceOf(DriverError);
    }),
  );

  test(
    "a label needs at least one instance, no more than the quota has, and as much as its machine shows",
    run(async (bench) => {
      const provider = await bench.open();
      const need = await bench.call((signal) => provider.need(bench.rig.label, signal));
      const quota = await bench.call((signal) => provider.quota(signal));
      expect(need.instances).toBe(1);
      expect(exceeded(quota, {}, need)).toBe(undefined);
      await bench.create(provider, "0000000001");
      await bench.rig.settle();
      const listed = await bench.call((signal) => provider.list(signal));
      const mine = listed.find(({ type, tag }) => type === "instance" && tag?.nodeId === "0000000001");
      // `need` counts before the machine exists. A difference from what is listed would free or block quota.
      expect(mine?.resources).toEqual(need);
    }),
  );

  test(
    "a create beyond the quota fails with kind quota and leaves nothing",
    run(async (bench) => {
      if (bench.rig.fillQuota === undefined) return;
      const provider = await bench.open();
      await bench.rig.fillQuota();
      let kind = "none";
      try {
        await bench.create(provider, "0000000001");
      } catch (error) {
        kind = error instanceof DriverError ? error.kind : "untyped";
      }
      expect(kind).toBe("quota");
      // A machine that is left over would use up the very quota that the launcher waits for.
      expect(await bench.machinesOf(provider, "0000000001")).toEqual([]);
    }),
  );
}

/** Tests of what is the provider's fault and not the label's. */
export function faultTests({ test, expect }: TestKit, run: With): void {
  test(
    "each fault of a cloud is tried, or the rig says why it cannot happen",
    run(async ({ rig }) => {
      expect(
        FAULTS.filter((fault) => (rig[fault] === undefined) === (rig.cannot?.[fault] === undefined)),
      ).toEqual([]);
    }),
  );

  test(
    "a try that is never answered ends by itself, and the machine is made once",
    run(async (bench) => {
      if (bench.rig.silence === undefined) return;
      const provider = await bench.open();
      await bench.rig.silence();
      // "timeout" is the limit of the whole step: a driver without one for each try would hold the launch until then.
      await bench.create(provider, "0000000001", null, ["transient"]);
      expect((await bench.machinesOf(provider, "0000000001")).length).toBe(1);
    }),
  );

  test(
    "credentials that are refused are the provider's fault, in every call",
    run(async (bench) => {
      if (bench.rig.refuse === undefined) return;
      const provider = await bench.open();
      await bench.rig.refuse();
      const { signal } = new AbortController();
      const steps = (context: StepContext) => provider.create(bench.order("0000000001"), context);
      const calls = [
        () => bench.run(steps, null),
        () => provider.find(bench.tag("0000000002"), signal),
        () => provider.list(signal),
      ];
      for (const call of calls) expect((await bench.failure(call())).kind).toBe("access");
    }),
  );
}

/** Commands and builders open a provider that a launcher serves. */
export function lookTests({ test, expect }: TestKit, run: With): void {
  test(
    "a provider that is opened to look writes nothing, whatever is asked of it",
    run(async (bench) => {
      const { writes, label, pool } = bench.rig;
      if (writes === undefined) return;
      const untouched = await writes();
      const first = await bench.open("look");
      expect((await bench.call((signal) => first.list(signal))).filter(({ tag }) => tag !== null)).toEqual(
        [],
      );
      await bench.call((signal) => first.quota(signal));
      await bench.rig.drive(first.close());
      expect(await writes()).toEqual(untouched);
      const serving = await bench.open();
      await bench.create(serving, "0000000001");
      await bench.rig.settle();
      const before = await writes();
      const provider = await bench.open("look");
      await bench.call((signal) => provider.list(signal));
      await bench.call((signal) => provider.find(bench.tag("0000000001"), signal));
      await bench.call((signal) => provider.quota(signal));
      await bench.call((signal) => provider.need(label, signal));
      await bench.call(async (signal) => provider.offers?.zones?.list(pool, signal));
      await bench.rig.drive(provider.close());
      await bench.rig.settle();
      expect(await writes()).toEqual(before);
    }),
  );
}

/** Texts of errors reach logs, lists and the tree. */
export function secretTests({ test, expect }: TestKit, run: With): void {
  test(
    "an error that quotes the provider's secrets passes without them",
    run(async (bench) => {
      if (bench.rig.quoteSecrets === undefined) return;
      const provider = await bench.open();
      await bench.call((signal) => provider.list(signal));
      const secrets = await bench.rig.quoteSecrets();
      expect(secrets.length).toBeGreaterThan(0);
      const steps = (context: StepContext) => provider.create(bench.order("0000000001"), context);
      const { message } = await bench.failure(bench.run(steps, null));
      expect(secrets.filter((secret) => message.includes(secret))).toEqual([]);
    }),
  );
}

/** Tests for every driver, whatever its capabilities are. */
export function commonTests({ test, expect }: TestKit, run: With, driver: object): void {
  test(
    "a launcher loads the driver, and its provider has all methods",
    run(async (bench) => {
      if ("open" in driver) expect(driverProblem(driver)).toBe(undefined);
      expect(providerProblem(await bench.open())).toBe(undefined);
    }),
  );

  test(
    "a call whose signal has aborted already ends at once",
    run(async (bench) => {
      const provider = await bench.open();
      const reason = new DriverError("timeout", "too late");
      const calls = [
        () => provider.find(bench.tag("0000000001"), AbortSignal.abort(reason)),
        () => provider.list(AbortSignal.abort(reason)),
        () => provider.quota(AbortSignal.abort(reason)),
      ];
      for (const call of calls) expect(await bench.failure(call())).toBe(reason);
    }),
  );

  test(
    "closing twice does nothing more; every call afterwards rejects with a DriverError",
    run(async (bench) => {
      const provider = await bench.open();
      await bench.rig.drive(provider.close());
      await bench.rig.drive(provider.close());
      const { signal } = new AbortController();
      const steps = provider.create(bench.order("0000000001"), { signal, externalId: null });
      const drain = async () => {
        for await (const _ of steps);
      };
      const find = () => provider.find(bench.tag("0000000001"), signal);
      for (const call of [drain, () => provider.list(signal), find]) {
        expect(await bench.failure(call())).toBeInstanceOf(DriverError);
      }
    }),
  );
}
