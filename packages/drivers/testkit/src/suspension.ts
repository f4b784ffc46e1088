import type { StepContext } from "@nodeyard/driver";
import type { Bench, TestKit, With } from "./rig.ts";

const ID = "0000000042";

/** Tests of `offers.suspension`: each part can be interrupted at any point and started again. */
export function suspensionTests({ test, expect }: TestKit, run: With): void {
  const suspending = (body: (bench: Bench) => Promise<void>) =>
    run(async (bench) => (bench.rig.suspends === true ? body(bench) : undefined));

  test(
    "suspension is offered where the rig says so, and nowhere else",
    run(async (bench) => {
      const { suspension } = (await bench.open()).offers ?? {};
      expect(suspension !== undefined).toBe(bench.rig.suspends === true);
    }),
  );

  test(
    "a suspended machine is listed with its tag, and the same one wakes: id and host keys; twice is no error",
    suspending(async (bench) => {
      const provider = await bench.open();
      const { machine, externalId } = await bench.create(provider, ID);
      const listed = async () => {
        await bench.rig.settle();
        const all = await bench.call((signal) => provider.list(signal));
        return all.filter(({ type, tag }) => type === "instance" && tag?.nodeId === ID);
      };
      const amounts = (await listed()).map(({ id, resources }) => [id, resources]);
      expect(amounts.map(([id]) => id)).toEqual([machine.externalId]);
      for (let twice = 0; twice < 2; twice++) await bench.suspend(provider, ID, externalId);
      expect(await bench.rig.answers?.(machine)).toBe(bench.rig.answers && false);
      // A machine that is not listed would be taken for gone, one without a tag for a stranger's, and one without amounts for room.
      expect((await listed()).map(({ id, resources }) => [id, resources])).toEqual(amounts);
      expect(await bench.call((signal) => provider.find(bench.tag(ID), signal))).toEqual(machine.externalId);
      for (let twice = 0; twice < 2; twice++) {
        const woken = await bench.wake(provider, ID, externalId);
        expect([woken.externalId, woken.hostKeys]).toEqual([machine.externalId, machine.hostKeys]);
        expect(await bench.rig.answers?.(woken)).toBe(bench.rig.answers && true);
      }
      // As one that has ended it would be taken from its next user.
      expect((await listed()).map(({ ended = false }) => ended)).toEqual([false]);
      await bench.remove(provider, ID, externalId);
    }),
  );

  test(
    "a crash at every yield of suspend and of wake: another process goes on, and there is one machine",
    suspending(async (bench) => {
      for (let crash = 1; crash <= 20; crash++) {
        const id = String(crash).padStart(10, "0");
        const first = await bench.open();
        const { externalId } = await bench.create(first, id);
        const context = (step: StepContext) => ({ ...step, externalId });
        const offer = first.offers!.suspension!;
        const cut = await bench.cutOff((step) => offer.suspend(bench.tag(id), context(step)), crash, {});
        const next = await bench.open();
        await bench.suspend(next, id, externalId);
        const again = next.offers!.suspension!;
        const woken = await bench.cutOff((step) => again.wake(bench.order(id), context(step)), crash, {});
        expect((await bench.wake(await bench.open(), id, externalId)).externalId).toEqual(externalId);
        expect((await bench.machinesOf(next, id)).length).toBe(1);
        await bench.remove(next, id, externalId);
        expect(await bench.machinesOf(next, id)).toEqual([]);
        if (cut.ended && woken.ended) return;
      }
    }),
  );

  test(
    "a machine whose suspension was given up within any step is removed, and a suspended one by its tag alone",
    suspending(async (bench) => {
      const provider = await bench.open();
      for (let cancel = 1; cancel <= 20; cancel++) {
        const id = String(cancel).padStart(10, "0");
        await bench.create(provider, id);
        const offer = provider.offers!.suspension!;
        const { ended } = await bench.cutOff((step) => offer.suspend(bench.tag(id), step), cancel, {
          abort: true,
        });
        await bench.remove(provider, id, null);
        await bench.rig.settle();
        expect(await bench.machinesOf(provider, id)).toEqual([]);
        if (ended) return;
      }
    }),
  );

  test(
    "a machine whose wake was given up within any step wakes, and is the same; what was removed meanwhile does not",
    suspending(async (bench) => {
      const provider = await bench.open();
      const { externalId } = await bench.create(provider, ID);
      for (let cancel = 1; cancel <= 20; cancel++) {
        await bench.suspend(provider, ID, externalId);
        const offer = provider.offers!.suspension!;
        const { ended } = await bench.cutOff((step) => offer.wake(bench.order(ID), step), cancel, {
          abort: true,
        });
        expect((await bench.wake(await bench.open(), ID, externalId)).externalId).toEqual(externalId);
        if (ended) break;
      }
      await bench.suspend(provider, ID, externalId);
      await bench.remove(await bench.open(), ID, externalId);
      await bench.rig.settle();
      expect((await bench.failure(bench.wake(provider, ID, externalId))).kind).toBe("not-found");
    }),
  );

  test(
    "what is not there is neither suspended nor woken, nor made",
    suspending(async (bench) => {
      const provider = await bench.open();
      for (const call of [() => bench.suspend(provider, ID, null), () => bench.wake(provider, ID, null)])
        expect((await bench.failure(call())).kind).toBe("not-found");
      expect(await bench.machinesOf(provider, ID)).toEqual([]);
    }),
  );
}
