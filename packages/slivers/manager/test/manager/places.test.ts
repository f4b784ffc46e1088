import { expect, test } from "vitest";
import { POLICIES } from "../../src/core/profiles.ts";
import { incoming } from "../core/arbitrary.ts";
import { Rig } from "./rig.ts";

const HOSTILE = ["eve1", "eve2", "eve3", "eve4"];

test("starts that never end, and ends that never do, keep no other sliver waiting for longer than seconds", async () => {
  const rig = new Rig();
  const stuck = new Set<number>();
  rig.machine.disturb = (step, ref, signal) => {
    if ((step !== "start" && step !== "destroy") || ref.index > HOSTILE.length) return;
    stuck.add(ref.index);
    return new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  };
  await rig.start();
  await rig.list(1, ...HOSTILE);
  expect(stuck.size).toBe(HOSTILE.length);
  await rig.list(2, ...HOSTILE, "ada");
  await rig.pass(5_000);
  expect(rig.found).toContain("ada:running");
  // After the time of a start the four are to end, and resist that, too.
  await rig.list(3, "ada", "bob");
  await rig.pass(130_000);
  expect(rig.found).toEqual(expect.arrayContaining(["ada:running", "bob:running"]));
  await rig.list(4, "ada");
  await rig.pass(45_000);
  expect(rig.found.some((one) => one.startsWith("bob"))).toBe(false);
  await rig.kill();
});

test("the first start of a sliver goes ahead of starts of those that ended by themselves", async () => {
  const rig = new Rig();
  await rig.start();
  const busy = ["eve1", "eve2", "eve3", "eve4", "eve5", "eve6"];
  await rig.list(1, ...busy);
  const began: number[] = [];
  const open: (() => void)[] = [];
  rig.machine.disturb = (step, ref) => {
    if (step !== "start") return;
    began.push(ref.index);
    return new Promise((resolve) => open.push(resolve));
  };
  for (const made of rig.machine.made.values()) made.phase = "stopped";
  rig.manager.requestSync();
  await rig.settle();
  expect(began).toEqual([1, 2, 3, 4]);
  await rig.list(2, ...busy, "ada");
  for (const done of open.splice(0)) done();
  await rig.settle();
  expect(began.slice(4)).toEqual([7, 5, 6]);
  for (const done of open) done();
  await rig.settle();
  await rig.kill();
});

test("a sliver that ends by itself again and again is started ever more seldom, and gives back at once what it borrowed", async () => {
  const rig = new Rig();
  await rig.start();
  await rig.list(1, "eve", "ada");
  const count = (step: string) => rig.machine.log.filter((line) => line.startsWith(`${step} 1:`)).length;
  const end = () => {
    rig.machine.made.get(1)!.phase = "stopped";
    rig.manager.requestSync();
  };
  for (let second = 0; second < 60; second++) {
    end();
    await rig.pass(1_000);
  }
  expect(count("start")).toBeGreaterThan(3);
  expect(count("start")).toBeLessThan(20);
  const configured = count("configure");
  end();
  await rig.deliver(2, [
    incoming("eve", 2, { rspec: { ...POLICIES.r0.defaults, cpuShare: 7 } }),
    incoming("ada", 1),
  ]);
  expect(count("configure")).toBe(configured + 1);
  await rig.pass(60_000);
  expect(rig.found).toContain("eve:running");
  await rig.kill();
});
