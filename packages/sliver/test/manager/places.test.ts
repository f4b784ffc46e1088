import { expect, test } from "vitest";
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
