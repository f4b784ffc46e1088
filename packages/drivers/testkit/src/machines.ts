import type { ExternalId, StepContext } from "@nodeyard/driver";
import type { TestKit, With } from "./rig.ts";

/** Ten digits, as node ids have. Every test has a cloud of its own (`Bench`), so one id serves most of them. */
const ID = "0000000042";

/** Tests of create and remove: each can be interrupted at any point and started again. */
export function machineTests({ test, expect }: TestKit, run: With): void {
  test(
    "a created machine is described, saved before it is up, found by its tag and listed with it",
    run(async (bench) => {
      const provider = await bench.open();
      const { machine, externalId } = await bench.create(provider, ID);
      // The saved id is what a launcher has after a crash, so it must be the final one.
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
      // Null: the launcher died before it could save the id. A second machine would be paid for and never used.
      expect((await bench.create(provider, ID, null)).machine.externalId).toEqual(machine.externalId);
      expect((await bench.machinesOf(provider, ID)).length).toBe(1);
    }),
  );

  for (const stored of [true, false]) {
    test(
      `a crash at every yield of create, the checkpoint ${stored ? "stored" : "lost"}: one machine, then none`,
      run(async (bench) => {
        // One yield further each time, until the create ends before it is cut off. More than 20 steps would not be tested.
        for (let crash = 1; crash <= 20; crash++) {
          const id = String(crash).padStart(10, "0");
          const provider = await bench.open();
          const create = (context: StepContext) => provider.create(bench.order(id), context);
          const left = await bench.cutOff(create, crash, { stored });
          // Another process: whatever the first one kept in memory is lost.
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
        const create = (context: StepContext) => provider.create(bench.order(id), context);
        const { ended } = await bench.cutOff(create, cancel, { abort: true });
        await bench.rig.settle();
        await bench.remove(provider, id, null);
        await bench.rig.settle();
        expect(await bench.machinesOf(provider, id)).toEqual([]);
        if (ended) return;
      }
    }),
  );
}

/** Tests of `remove`: also twice, halfway, and of a machine that is gone. */
export function removalTests({ test, expect }: TestKit, run: With): void {
  test(
    "removing twice, by no id, by an id of nothing and by an id of an older shape ends normally",
    run(async (bench) => {
      const provider = await bench.open();
      const { externalId } = await bench.create(provider, ID);
      await bench.remove(provider, ID, null);
      expect(await bench.machinesOf(provider, ID)).toEqual([]);
      // Forms that records of older versions and of Nodepool may have. The tag is enough to find the machine, so none of them is
      // an error.
      const older = { id: externalId, zone: "a" } as ExternalId;
      for (const id of [externalId, null, "no-such-id", "", {}, older]) await bench.remove(provider, ID, id);
    }),
  );

  test(
    "a deletion that the cloud answers with not found, for a machine that is there, is repeated",
    run(async (bench) => {
      if (bench.rig.denyRemoval === undefined) return;
      const provider = await bench.open();
      const { externalId } = await bench.create(provider, ID);
      await bench.rig.settle();
      await bench.rig.denyRemoval();
      // "timeout" is the limit of the whole step, ten minutes in most drivers.
      await bench.remove(provider, ID, externalId, ["transient"]);
      await bench.rig.settle();
      expect(await bench.machinesOf(provider, ID)).toEqual([]);
    }),
  );

  test(
    "removing by an id that belongs to another node leaves that node alone",
    run(async (bench) => {
      const provider = await bench.open();
      // Clouds use ids again, and records can be wrong: only the tag says whose machine it is.
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
      // With the id of the removed machine, as a record has it that was not written yet.
      const again = await bench.create(provider, ID, externalId);
      expect((await bench.machinesOf(provider, ID)).length).toBe(1);
      await bench.remove(provider, ID, again.externalId);
    }),
  );
}
