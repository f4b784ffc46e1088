import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { POLICIES } from "../../src/core/profiles.ts";
import { withLocal } from "../../src/core/record.ts";
import { sync } from "../../src/core/sync.ts";
import { incoming, name } from "../core/arbitrary.ts";
import { Rig } from "./rig.ts";

const some = fc.uniqueArray(name);
const lazy = (one: string, number: number) => incoming(one, number, { instantiation: "delegated" });
/** A promise that is settled from outside. */
const gate = () => {
  let open: () => void = () => undefined;
  const closed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { closed, open };
};

describe("reconciling, by the numbers of the invariants", () => {
  test("20: a second sync does nothing", () =>
    fc.assert(
      fc.asyncProperty(fc.array(some, { minLength: 1, maxLength: 4 }), async (lists) => {
        const rig = new Rig();
        await rig.start();
        for (const [at, list] of lists.entries()) await rig.list(at + 1, ...list);
        const before = [...rig.machine.log];
        const calls = rig.files.calls;
        rig.manager.requestSync();
        await rig.pass(60_000);
        expect(rig.machine.log).toEqual(before);
        expect(rig.files.calls).toBe(calls);
        const { state, options } = rig.manager;
        expect(sync(state, await rig.machine.inspect(), options.machine, 0).tasks).toEqual([]);
      }),
      { numRuns: 40 },
    ));

  test("21: what no record owns goes", async () => {
    const rig = new Rig();
    await rig.start();
    await rig.list(1, "ada", "bob");
    await rig.list(2, "bob");
    expect(rig.found).toEqual(["bob:running"]);
    // Each sliver's life, as the log has it; one that only gets other amounts is not worth a line.
    const made = (one: string) => `create, configure, start of ${one}`;
    expect([...rig.log].sort()).toEqual([made("ada"), made("bob"), "destroy of ada"]);
  });

  test("22: what waits to be created is not, before Create; and stays away after Destroy", async () => {
    const rig = new Rig();
    await rig.start();
    await rig.deliver(1, [lazy("ada", 1), incoming("bob", 1, { instantiation: "not-instantiated" })]);
    await rig.pass(60_000);
    expect(rig.found).toEqual([]);
    await rig.manager.change((state) => ({ state: withLocal(state, "ada", { desired: true }), result: 0 }));
    await rig.settle();
    expect(rig.found).toEqual(["ada:running"]);
    await rig.manager.change((state) => ({ state: withLocal(state, "ada", { desired: false }), result: 0 }));
    await rig.settle();
    await rig.deliver(2, [lazy("ada", 2)]);
    await rig.pass(60_000);
    expect(rig.found).toEqual([]);
  });

  test("23: one at a time per sliver; a stuck sliver delays no other, and gets the newest when it is free", async () => {
    const rig = new Rig();
    const { closed, open } = gate();
    rig.machine.disturb = (step, { index }) => (step === "create" && index === 1 ? closed : undefined);
    await rig.start();
    await rig.list(1, "ada", "bob", "cyd");
    expect(rig.found).toEqual(["bob:running", "cyd:running"]);
    await rig.deliver(2, [incoming("ada", 2, { keys: ["old"] }), incoming("bob", 2)]);
    await rig.deliver(3, [incoming("ada", 3, { keys: ["new"] }), incoming("bob", 3)]);
    expect(rig.found).toEqual(["bob:running"]);
    open();
    await rig.settle();
    expect(rig.found).toEqual(["ada:running", "bob:running"]);
    expect([...rig.machine.made.values()].find(({ config }) => config.name === "ada")?.applied?.keys).toEqual(
      ["new"],
    );
    expect(rig.machine.log.filter((one) => one.startsWith("create 1:"))).toHaveLength(1);
    expect(rig.machine.overlaps).toBe(0);
  });

  test("a step that never ends loses its permit at its deadline, and keeps its own sliver only", async () => {
    const rig = new Rig();
    rig.machine.disturb = (step, { index }) =>
      step === "create" && index <= 2 ? new Promise(() => undefined) : undefined;
    await rig.start();
    await rig.list(1, "ada", "bob", "cyd");
    expect(rig.found).toEqual([]);
    await rig.pass(901_000);
    expect(rig.found).toEqual(["cyd:running"]);
  });

  test("24: the machine ends as the last document says, whatever failed on the way", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(some, { minLength: 1, maxLength: 5 }),
        fc.array(fc.nat(9), { maxLength: 12 }),
        async (lists, faults) => {
          const rig = new Rig();
          let count = 0;
          rig.machine.disturb = () => {
            if (faults.includes(count++)) throw new Error("as injected");
          };
          await rig.start();
          await Promise.all(lists.map((list, at) => rig.list(at + 1, ...list)));
          await rig.pass(3_600_000);
          expect(rig.found).toEqual(
            lists
              .at(-1)!
              .map((one) => `${one}:running`)
              .sort(),
          );
          expect(rig.machine.overlaps).toBe(0);
        },
      ),
      { numRuns: 40 },
    ));

  test("25: one that fails keeps neither the others nor the store, and is tried again with a pause", async () => {
    const rig = new Rig();
    let tries = 0;
    rig.machine.disturb = (step, { index }) => {
      if (step === "create" && index === 1 && ++tries < 4) throw new Error("no space");
    };
    await rig.start();
    await rig.list(1, "ada", "bob");
    expect(rig.found).toEqual(["bob:running"]);
    expect(rig.manager.failures.text(1)).toMatchObject({ message: "no space", attempts: 1 });
    expect(tries).toBe(1);
    await rig.pass(60_000);
    expect(rig.found).toEqual(["ada:running", "bob:running"]);
    expect(rig.manager.failures.text(1)).toBeUndefined();
  });

  test("26: a lost store destroys nothing before a full document, and takes over what it then names", async () => {
    const rig = new Rig();
    await rig.start();
    const of = (number: number, ...names: string[]) =>
      names.map((one) => incoming(one, number, { generation: 5 }));
    await rig.deliver(1, of(1, "ada", "bob"));
    const log = [...rig.machine.log];
    for (const slot of ["state.0.json", "state.1.json"]) rig.files.damage(slot, new Uint8Array());
    await rig.start();
    await rig.pass(60_000);
    expect(rig.machine.log).toEqual(log);
    expect(rig.manager.state.safe).toBe(true);
    await rig.deliver(1, of(1, "bob", "cyd"));
    expect(rig.found).toEqual(["bob:running", "cyd:running"]);
    expect(rig.machine.log.filter((one) => one.startsWith("create"))).toHaveLength(3);
    const starts = rig.machine.log.filter((one) => one.startsWith("start 2:"));
    expect(starts).toHaveLength(1);
  });

  test("27: what was meant for an older incarnation has no effect on the next", async () => {
    const rig = new Rig();
    await rig.start();
    const of = (number: number, generation: number) =>
      rig.deliver(number, [incoming("ada", number, { generation })]);
    const { closed, open } = gate();
    await of(1, 1);
    rig.machine.disturb = (step, { incarnation }) =>
      step === "destroy" && incarnation === 1 ? closed : undefined;
    await of(2, 2);
    const fresh = [...rig.machine.made.values()].find(({ config }) => config.generation === 2);
    expect(fresh?.phase).toBe("running");
    open();
    await rig.settle();
    expect(rig.found).toEqual(["ada:running"]);
    expect([...rig.machine.made.values()][0]!.config.generation).toBe(2);
  });
});

describe("reconciling, by example", () => {
  test("a restart adopts what runs: nothing is created, started or configured again", async () => {
    const rig = new Rig();
    await rig.start();
    await rig.list(1, "ada", "bob");
    const log = [...rig.machine.log];
    await rig.start();
    await rig.pass(60_000);
    expect(rig.machine.log).toEqual(log);
  });

  test("a sliver ends at its time, and a jump of the clock ends nothing", async () => {
    const rig = new Rig();
    await rig.start();
    const now = rig.clock.now() / 1000;
    await rig.deliver(1, [
      incoming("ada", 1, { expiresAt: now + 50 }),
      incoming("bob", 1, { expiresAt: now + 100_000 }),
    ]);
    await rig.pass(45_000);
    expect(rig.found).toHaveLength(2);
    await rig.pass(20_000);
    expect(rig.found).toEqual(["bob:running"]);
    rig.clock.jump(1_000_000_000);
    await rig.pass(10_000);
    expect(rig.manager.clockSuspect).toBe(true);
    expect(rig.found).toEqual(["bob:running"]);
    rig.clock.jump(-1_000_000_000);
    await rig.pass(60_000);
    expect(rig.manager.clockSuspect).toBe(false);
    expect(rig.found).toEqual(["bob:running"]);
  });

  test("suspended: stopped, and running again when it is not", async () => {
    const rig = new Rig();
    await rig.start();
    const enabled = (number: number, value: number) =>
      rig.deliver(number, [incoming("ada", number, { rspec: { ...POLICIES.r0.defaults, enabled: value } })]);
    await enabled(1, 1);
    await enabled(2, 0);
    expect(rig.found).toEqual(["ada:stopped"]);
    await enabled(3, 1);
    expect(rig.found).toEqual(["ada:running"]);
  });

  test("what a loan gives back is taken from the borrower before its lender has it", async () => {
    const rig = new Rig();
    await rig.start();
    const share = (one: string, number: number, cpuShare: number) =>
      incoming(one, number, { rspec: { ...POLICIES.r0.defaults, cpuShare } });
    await rig.deliver(1, [share("ada", 1, 64), share("bob", 1, 32)]);
    const lend = (amount: number) =>
      rig.manager.change((state) => ({
        state: withLocal(state, "ada", { loans: [{ to: "bob", resource: "cpuShare", amount }] }),
        result: 0,
      }));
    await lend(40);
    await rig.settle();
    rig.machine.log.length = 0;
    const { closed, open } = gate();
    rig.machine.disturb = (_step, { index }) => (index === 2 ? closed : undefined);
    await lend(0);
    await rig.settle();
    expect(rig.machine.log).toEqual([]);
    open();
    await rig.settle();
    expect(rig.machine.log).toEqual(["configure 2:2", "configure 1:1"]);
  });

  test("more slivers than places: the oldest have one, the others say what they wait for", async () => {
    const rig = new Rig();
    await rig.start();
    await rig.list(1, ...Array.from({ length: 9 }, (_, at) => `s${at}`));
    expect(rig.found).toHaveLength(8);
    expect(rig.manager.result!.unplaced).toEqual(["s8"]);
    await rig.list(2, ...Array.from({ length: 8 }, (_, at) => `s${at + 1}`));
    expect(rig.found).toContain("s8:running");
  });

  test("a disk that is full: nothing is acknowledged, nothing is done, and it goes on when there is room", async () => {
    const rig = new Rig();
    await rig.start();
    await rig.list(1, "ada");
    rig.files.faults.set(rig.files.calls + 2, new Error("ENOSPC"));
    await expect(rig.list(2, "bob")).rejects.toMatchObject({ code: "sliver.store_write" });
    await rig.pass(60_000);
    expect(rig.found).toEqual(["ada:running"]);
    await rig.list(2, "bob");
    expect(rig.found).toEqual(["bob:running"]);
  });
});
