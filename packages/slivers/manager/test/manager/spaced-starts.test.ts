import { describe, expect, test } from "vitest";
import { withLocal } from "../../src/core/record.ts";
import { incoming } from "../core/arbitrary.ts";
import { Rig } from "./rig.ts";

const lazy = (name: string) => incoming(name, 1, { instantiation: "delegated" });

/** Three slivers that a boot has stopped, of which the first has been started again. */
async function booted(): Promise<Rig> {
  const rig = new Rig({ startSpacing: 3000 });
  await rig.start();
  await rig.deliver(1, [lazy("ada"), lazy("bob"), lazy("cyd")]);
  for (const name of ["ada", "bob", "cyd"]) await local(rig, name, { desired: true });
  await rig.pass(10_000);
  for (const made of rig.machine.made.values()) made.phase = "stopped";
  await rig.start();
  expect(rig.found).toEqual(["ada:running", "bob:stopped", "cyd:stopped"]);
  return rig;
}

async function local(rig: Rig, name: string, change: Parameters<typeof withLocal>[2]): Promise<void> {
  await rig.manager.change((state) => ({ state: withLocal(state, name, change), result: 0 }));
  await rig.settle();
}

/** Looks at the machine while `ms` pass. */
async function looks(rig: Rig, ms: number): Promise<number> {
  const before = rig.manager.sequence;
  await rig.pass(ms);
  return rig.manager.sequence - before;
}

describe("starts after a boot", () => {
  test("three seconds apart", async () => {
    const rig = await booted();
    await rig.pass(3100);
    expect(rig.found).toEqual(["ada:running", "bob:running", "cyd:stopped"]);
    await rig.pass(3000);
    expect(rig.found).toEqual(["ada:running", "bob:running", "cyd:running"]);
  });

  test("a sliver that is no longer to be started is not waited for", async () => {
    const rig = await booted();
    await local(rig, "bob", { stopped: true });
    expect(await looks(rig, 15_000)).toBeLessThan(5);
    expect(rig.found).toEqual(["ada:running", "bob:stopped", "cyd:running"]);
  });

  test("a sliver that is to end does not wait for its turn to start", async () => {
    const rig = await booted();
    await local(rig, "cyd", { desired: false });
    expect(rig.found).toEqual(["ada:running", "bob:stopped"]);
  });

  test("a machine that cannot be looked at when a turn has come is asked again at the heartbeat", async () => {
    const rig = await booted();
    const { inspect } = rig.machine;
    rig.machine.inspect = () => Promise.reject(new Error("it is gone"));
    expect(await looks(rig, 25_000)).toBeLessThan(5);
    rig.machine.inspect = inspect;
    await rig.pass(10_000);
    expect(rig.found).toEqual(["ada:running", "bob:running", "cyd:running"]);
  });
});
