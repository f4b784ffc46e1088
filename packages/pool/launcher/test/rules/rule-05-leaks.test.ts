import { describe, expect, test } from "vitest";
import { withMethods } from "./with-methods.ts";
import { fakeProvider, launcherConfig, type MemberOptions, World } from "./world.ts";

const signal = new AbortController().signal;

const there = (world: World) => world.cloud.inspect().map(({ name }) => name);

/** Longer than two sweeps with their jitter. */
const TWO_SWEEPS = 160_000;

async function launcher(world = new World(), options: MemberOptions = {}) {
  const member = await world.start("a", launcherConfig([fakeProvider()]), options);
  return { world, ...member };
}

describe("rule 5: what outlives its record", () => {
  test("goes after two looks, and not after one", async () => {
    const { world, counters } = await launcher();
    await world.machine("0000000900", {});
    // The first look is over by now, the second comes later for certain.
    await world.run(80_000);
    expect(there(world)).toEqual(["0000000900"]);
    await world.run(TWO_SWEEPS);
    expect(there(world)).toEqual([]);
    expect(counters.value("launcher.leaked")).toBe(1);
  });

  test("is counted once, however many sweeps its cloud takes to end it", async () => {
    let asked = 0;
    const wrap = withMethods((inner) => ({
      removeResource: async (...call) => {
        if (++asked > 2) await inner.removeResource(...call);
      },
    }));
    const { world, counters } = await launcher(new World(), { wrap });
    await world.machine("0000000900", {});
    await world.until("the end of the machine", () => there(world).length === 0, 3 * TWO_SWEEPS);
    expect([asked, counters.value("launcher.leaked")]).toEqual([3, 1]);
  });

  test("stays when it belongs to another installation or provider, or has no tag, as Python's machines", async () => {
    const { world, counters } = await launcher();
    const others = [
      { installation: "11111111-2222-4333-8444-555555555555" },
      { provider: "other" },
      null,
      { installation: "" },
    ];
    for (const [at, tag] of others.entries()) await world.machine(`foreign-${at}`, tag);
    await world.run(3 * TWO_SWEEPS);
    expect(there(world)).toHaveLength(others.length);
    expect(counters.value("launcher.leaked")).toBe(0);
    expect(counters.value("launcher.leak_brake")).toBe(0);
  });

  test("stays while it has a record, in whatever state that is, and while the record cannot be seen", async () => {
    const { world, tree, launcher: it } = await launcher();
    const id = await world.ask();
    const { nodes } = await world.fulfilled(id);
    await world.put(`/nodepool/nodes/${(nodes as string[])[0]}`, { ...world.nodes()[0], state: "hold" });
    await world.machine("0000000900", {});
    world.fault = ({ kind, path }) =>
      kind !== "write" && path.startsWith("/nodepool/nodes") ? "lose-request" : undefined;
    tree.expire();
    await world.run(2 * TWO_SWEEPS);
    expect(it.view.complete).toBe(false);
    expect(there(world)).toHaveLength(2);
    world.fault = () => undefined;
    await world.run(2 * TWO_SWEEPS);
    expect(there(world)).toEqual([`np${(nodes as string[])[0]}`]);
  });

  test("does not go by a look that saw half of the records", async () => {
    let looks = 0;
    let atFirst = () => {};
    const wrap = withMethods((inner) => ({
      list: async (sought) => {
        const found = await inner.list(sought);
        if (++looks === 1) atFirst();
        return found;
      },
    }));
    const { world, tree, launcher: it } = await launcher(new World(), { wrap });
    let seen: boolean | undefined;
    atFirst = () => {
      tree.disconnect();
      seen = it.view.complete;
    };
    await world.machine("0000000900", {});
    for (const left of [["0000000900"], ["0000000900"], []]) {
      const before = looks;
      await world.until("the next look", () => looks > before, TWO_SWEEPS);
      await world.run(1_000);
      expect(there(world)).toEqual(left);
    }
    expect(seen, "whether the first one saw all records").toBe(false);
  });

  test("of more than three machines and a tenth of all stays, with an alarm that is repeated", async () => {
    const { world, log, counters } = await launcher();
    for (let at = 0; at < 4; at++) await world.machine(`000000090${at}`, {});
    await world.run(2 * TWO_SWEEPS);
    expect(there(world)).toHaveLength(4);
    expect(counters.value("launcher.leak_brake", { provider: "cloud" })).toBeGreaterThan(1);
    const alarms = log.lines.filter(({ level, text }) => level === "error" && text.includes("leak sweep"));
    expect(alarms[0]?.facts).toMatchObject({ provider: "cloud", wouldDelete: 4, listed: 4 });
    // A person looked and took one away: three are no more than the brake allows.
    await world.cloud.delete(world.cloud.inspect()[0]!.id, signal);
    await world.run(2 * TWO_SWEEPS);
    expect(there(world)).toEqual([]);
  });

  test("an empty or restored tree wipes no cloud: its installation is another one", async () => {
    const { world, launcher: first } = await launcher();
    for (let at = 0; at < 2; at++) await world.fulfilled(await world.ask());
    await world.settle(first.close(1_000));
    const machines = there(world);
    expect(machines).toHaveLength(2);
    const other = new World({}, world);
    await launcher(other);
    expect(other.json("/nodeyard/installation")).not.toEqual(world.json("/nodeyard/installation"));
    await other.run(3 * TWO_SWEEPS);
    expect(there(world)).toEqual(machines);
  });
});
