import { expect, test } from "vitest";
import { dumpOf, reportOf } from "../../src/manager/report.ts";
import { Rig } from "./rig.ts";

test("the dump names a step that hangs, for how long and until when, and what fails; a quiet node has nothing to name", async () => {
  const rig = new Rig();
  rig.machine.disturb = (step, { index }) => {
    if (step === "create" && index === 1) return new Promise(() => undefined);
    if (step === "start" && index === 2) throw new Error("no such device");
    return undefined;
  };
  await rig.start();
  await rig.list(1, "ada", "bob", "cyd");
  await rig.pass(100_000);
  const lines = dumpOf(rig.manager, rig.clock.monotonic());
  expect(lines[0]).toMatch(/^dump: node node-1 at epoch \d+, version 1, look \d+: 3 slivers, 1 busy$/);
  const hangs = lines.find((line) => line.startsWith("dump: task of ada"));
  const [, spent, left] = /: create \(of create .*\) for ([\d.]+) s, given up in ([\d.]+) s$/.exec(hangs!)!;
  expect(Number(spent)).toBeGreaterThanOrEqual(100);
  // The limit of a creation: 900 s.
  expect(Number(spent) + Number(left)).toBeCloseTo(900, 0);
  expect(lines.filter((line) => line.includes("bob"))).toEqual([
    expect.stringMatching(/^dump: sliver bob fails: .*no such device/),
  ]);

  const quiet = new Rig();
  await quiet.start();
  await quiet.list(1, "ada");
  expect(dumpOf(quiet.manager, quiet.clock.monotonic())).toEqual([
    expect.stringContaining("1 slivers, 0 busy"),
    "dump: ends",
  ]);
  quiet.machine.stays = ["quota group 0/267: busy", "quota group 0/268: busy"];
  expect(dumpOf(quiet.manager, quiet.clock.monotonic())[1]).toBe(
    "dump: 2 things of the machine are not right yet: quota group 0/267: busy",
  );
});

test("operations on files that wait, and disk limits that do not hold, are in the report and in the dump", async () => {
  let underWay = 0;
  const rig = new Rig({ fileOperations: () => underWay });
  await rig.start();
  await rig.list(1, "ada");
  underWay = 3;
  await rig.pass(20_000);
  expect(reportOf(rig.manager)).not.toHaveProperty("waitingThreads");
  expect(reportOf(rig.manager)).not.toHaveProperty("counting");
  // One of three ends, and others come.
  underWay = 2;
  await rig.pass(10_000);
  underWay = 5;
  rig.machine.miscounts = true;
  await rig.pass(20_000);
  expect(reportOf(rig.manager)).toMatchObject({ waitingThreads: 2, counting: true });
  expect(dumpOf(rig.manager, rig.clock.monotonic())).toContainEqual(
    "dump: 2 operations on files have waited for more than half a minute",
  );
  underWay = 0;
  await rig.pass(10_000);
  expect(reportOf(rig.manager)).not.toHaveProperty("waitingThreads");
});
