import type { ExternalId, Provider, Step } from "../contract.ts";
import { DriverError } from "../errors.ts";
import type { Bench, TestKit } from "./rig.ts";

type With = (body: (bench: Bench) => Promise<void>) => () => Promise<void>;

const ID = "0000000042";

/** Create and remove: each may be cut off at any point and entered again. */
export function machineTests({ test, expect }: TestKit, run: With): void {
  test(
    "a created machine is described, saved before it is up, found by its tag and listed with it",
    run(async (bench) => {
      const provider = await bench.open();
      const { machine, externalId } = await bench.create(provider, ID);
      expect(externalId).toEqual(machine.externalId);
      await bench.rig.settle();
      expect(await bench.call((signal) => provider.find(bench.tag(ID), signal))).toEqual(machine.externalId);
      const resources = await bench.call((signal) => provider.list(signal));
      const mine = resources.filter(({ tag }) => tag?.nodeId === ID);
      expect(mine.map(({ tag }) => tag)).toEqual(mine.map(() => bench.tag(ID)));
      expect(mine.map(({ type }) => type).includes("instance")).toBe(true);
    }),
  );

  test(
    "a second create of the same tag returns the same machine, stored id or not",
    run(async (bench) => {
      const provider = await bench.open();
      const { machine, externalId } = await bench.create(provider, ID);
      expect((await bench.create(provider, ID, externalId)).machine.externalId).toEqual(machine.externalId);
      expect((await bench.create(provider, ID, null)).machine.externalId).toEqual(machine.externalId);
      expect((await bench.machinesOf(provider, ID)).length).toBe(1);
    }),
  );

  for (const stored of [true, false]) {
    test(
      `a crash at every yield of create, the checkpoint ${stored ? "stored" : "lost"}: one machine, then none`,
      run(async (bench) => {
        for (let crash = 1; crash <= 20; crash++) {
          const id = String(crash).padStart(10, "0");
          const left = await crashAfter(bench, await bench.open(), id, crash, stored);
          const next = await bench.open();
          const { externalId } = await bench.create(next, id, left.externalId);
          expect((await bench.machinesOf(next, id)).length).toBe(1);
          await bench.remove(next, id, externalId);
          expect((await bench.machinesOf(next, id)).length).toBe(0);
          if (left.ended) return;
        }
      }),
    );
  }

  test(
    "a create that is cancelled within any step leaves nothing that a removal by tag does not find",
    run(async (bench) => {
      const provider = await bench.open();
      for (let cancel = 1; cancel <= 20; cancel++) {
        const id = String(cancel).padStart(10, "0");
        const ended = await cancelWithin(bench, provider, id, cancel);
        await bench.rig.settle();
        await bench.remove(provider, id, null);
        await bench.rig.settle();
        expect(await bench.machinesOf(provider, id)).toEqual([]);
        if (ended) return;
      }
    }),
  );
}

export function removalTests({ test, expect }: TestKit, run: With): void {
  test(
    "removing twice, by no id, by an id of nothing and by an id of an older shape ends normally",
    run(async (bench) => {
      const provider = await bench.open();
      const { externalId } = await bench.create(provider, ID);
      await bench.remove(provider, ID, null);
      expect(await bench.machinesOf(provider, ID)).toEqual([]);
      const older = { id: externalId, zone: "a" } as ExternalId;
      for (const id of [externalId, null, "no-such-id", "", {}, older]) await bench.remove(provider, ID, id);
    }),
  );

  test(
    "removing by an id that belongs to another node leaves that node alone",
    run(async (bench) => {
      const provider = await bench.open();
      const other = "0000000043";
      const { externalId } = await bench.create(provider, other);
      await bench.remove(provider, ID, externalId);
      expect((await bench.machinesOf(provider, other)).length).toBe(1);
    }),
  );

  test(
    "a removed tag is found no more and can be created again",
    run(async (bench) => {
      const provider = await bench.open();
      const { externalId } = await bench.create(provider, ID);
      await bench.remove(provider, ID, externalId);
      await bench.rig.settle();
      expect(await bench.call((signal) => provider.find(bench.tag(ID), signal))).toBe(undefined);
      const again = await bench.create(provider, ID, externalId);
      expect((await bench.machinesOf(provider, ID)).length).toBe(1);
      await bench.remove(provider, ID, again.externalId);
    }),
  );
}

/** Runs a create up to its `yields`-th yield and forgets it there, as a killed process does. */
async function crashAfter(bench: Bench, provider: Provider, id: string, yields: number, stored: boolean) {
  const context = { signal: new AbortController().signal, externalId: null };
  const steps = provider.create(bench.order(id), context);
  let externalId: ExternalId | null = null;
  for (let count = 0; count < yields; count++) {
    const next = await attempt(bench.rig.drive(steps.next()));
    if (next === undefined || next.done) return { externalId, ended: next?.done === true };
    if (stored) externalId = next.value.save?.externalId ?? externalId;
  }
  return { externalId, ended: false };
}

/** Aborts while the code after the `step`-th yield is under way. True when the create had ended before. */
async function cancelWithin(bench: Bench, provider: Provider, id: string, step: number): Promise<boolean> {
  const controller = new AbortController();
  const steps = provider.create(bench.order(id), { signal: controller.signal, externalId: null });
  for (let count = 0; count < step; count++) {
    const next = await attempt(bench.rig.drive(steps.next()));
    if (next === undefined || next.done) return next?.done === true;
  }
  const underWay = steps.next();
  controller.abort(new DriverError("timeout", "the test gives up"));
  await attempt(bench.rig.drive(underWay));
  await attempt(bench.rig.drive(steps.return(undefined as never)));
  return false;
}

/** Undefined for a step that failed: the driver under test may be one that fails now and then. */
async function attempt<T>(next: Promise<IteratorResult<Step, T>>) {
  try {
    return await next;
  } catch (error) {
    if (error instanceof DriverError) return undefined;
    throw error;
  }
}
