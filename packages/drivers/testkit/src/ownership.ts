import type { Provider, Resource } from "@nodeyard/driver";
import { DriverError, idText, leaked } from "@nodeyard/driver";
import { Bench, INSTALLATION, OTHER_INSTALLATION, type TestKit, type With } from "./rig.ts";

/** Tests of rule 5: only resources of this installation that have no record are deleted. */
export function ownershipTests({ test, expect }: TestKit, run: With): void {
  test(
    "two installations with one provider name and one node id never see each other's machine as theirs",
    run(async (bench) => {
      const other = new Bench(bench.rig, OTHER_INSTALLATION);
      const [ours, theirs] = [await bench.open(), await other.open()];
      const id = "0000000007";
      const mine = await bench.create(ours, id);
      const its = await other.create(theirs, id);
      expect(JSON.stringify(mine.machine.externalId) === JSON.stringify(its.machine.externalId)).toBe(false);
      // Also when the stored id is that of the other installation's machine.
      await bench.remove(ours, id, its.machine.externalId);
      expect((await bench.machinesOf(ours, id)).length).toBe(0);
      expect((await other.machinesOf(theirs, id)).length).toBe(1);
      await other.remove(theirs, id, its.externalId);
    }),
  );

  test(
    "a leaked machine goes at the second sweep; foreign ones and another installation's stay",
    run(async (bench) => {
      const other = new Bench(bench.rig, OTHER_INSTALLATION);
      const [ours, theirs] = [await bench.open(), await other.open()];
      await bench.rig.makeForeign?.();
      await bench.create(ours, "0000000001");
      await bench.create(ours, "0000000002");
      await other.create(theirs, "0000000009");
      const before = (await bench.truth(ours)).length;
      const known = new Set(["0000000001"]);
      // The first sweep only suspects.
      const first = await sweep(bench, ours, known, new Set());
      expect(first.removed).toBe(0);
      const second = await sweep(bench, ours, known, first.suspects);
      expect(second.removed > 0).toBe(true);
      expect((await bench.machinesOf(ours, "0000000002")).length).toBe(0);
      expect((await bench.machinesOf(ours, "0000000001")).length).toBe(1);
      expect((await other.machinesOf(theirs, "0000000009")).length).toBe(1);
      // What goes after its machine is listed alone then, and two more sweeps find it.
      const third = await sweep(bench, ours, known, second.suspects);
      await sweep(bench, ours, known, third.suspects);
      expect((await bench.truth(ours)).length).toBe(before - second.removed);
    }),
  );

  test(
    "an empty tree (a new installation) and yesterday's tree (records lost) delete nothing of a running cloud",
    run(async (bench) => {
      const provider = await bench.open();
      for (let node = 1; node <= 5; node++) await bench.create(provider, String(node).padStart(10, "0"));
      const before = (await bench.truth(provider)).length;
      const fresh = new Bench(bench.rig, OTHER_INSTALLATION);
      const stranger = await fresh.open();
      // Two sweeps each, as the first never deletes.
      const looks = await sweep(fresh, stranger, new Set(), new Set());
      await sweep(fresh, stranger, new Set(), looks.suspects);
      const yesterday = await sweep(bench, provider, new Set(["0000000001"]), new Set());
      const braked = await sweep(bench, provider, new Set(["0000000001"]), yesterday.suspects);
      expect(braked.braked).toBe(true);
      expect((await bench.truth(provider)).length).toBe(before);
    }),
  );

  for (const [what, fault] of [
    ["that lost its tag", "loseTag"],
    ["that is in no list any more", "emptyList"],
  ] as const)
    test(
      `a machine ${what} is found by the id of its record, and no removal ends normally while it is there`,
      run(async (bench) => {
        if (bench.rig[fault] === undefined) return;
        const provider = await bench.open();
        const { externalId } = await bench.create(provider, "0000000042");
        const [machine] = await bench.machinesOf(provider, "0000000042");
        const undo = await bench.rig[fault](machine!);
        await bench.rig.settle();
        // Another process: this one may remember what it made.
        const next = await bench.open();
        const found = await bench.call((signal) => next.find(bench.tag("0000000042"), signal, externalId));
        expect(found === undefined).toBe(false);
        let refused = false;
        try {
          await bench.remove(next, "0000000042", externalId);
        } catch (error) {
          refused = error instanceof DriverError;
        }
        await undo?.();
        await bench.rig.settle();
        const left = await bench.truth(await bench.open());
        // Where it is left its record stays with it, and says so.
        expect(left.some(({ id }) => idText(id) === idText(machine!.id))).toBe(refused);
      }),
    );

  test(
    "removing a leaked resource that has gone meanwhile ends normally",
    run(async (bench) => {
      const provider = await bench.open();
      await bench.create(provider, "0000000003");
      const [resource] = await bench.machinesOf(provider, "0000000003");
      // The owner, or another launcher's sweep, may have deleted it since it was listed.
      for (let twice = 0; twice < 2; twice++) {
        await bench.call((signal) => provider.removeResource(resource as Resource, signal));
      }
      expect(await bench.machinesOf(provider, "0000000003")).toEqual([]);
    }),
  );
}

/** One sweep, in the way of the launcher. */
async function sweep(
  bench: Bench,
  provider: Provider,
  known: ReadonlySet<string>,
  previous: ReadonlySet<string>,
) {
  await bench.rig.settle();
  const resources = await bench.call((signal) => provider.list(signal));
  const { providerName } = bench.rig;
  const sweep = leaked(resources, known, {
    installation: bench.installation ?? INSTALLATION,
    provider: providerName,
    previous,
  });
  for (const resource of sweep.remove) {
    await bench.call((signal) => provider.removeResource(resource, signal));
  }
  await bench.rig.settle();
  return { suspects: sweep.suspects, removed: sweep.remove.length, braked: sweep.braked };
}
