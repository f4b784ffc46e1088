import { expect, test } from "vitest";
import { ApiRig, CONTROL, spec } from "../api/rig.ts";
import { incoming } from "../core/arbitrary.ts";
import { Rig } from "./rig.ts";

const suspended = (rig: Rig) => [...rig.machine.made.values()].map((one) => one.suspended === true);

test("a held sliver is suspended with the document, stays so over a restart, and goes on where it was", async () => {
  const rig = new Rig();
  await rig.start();
  await rig.list(1, "ada", "bob");
  const before = [...rig.machine.log];
  await rig.deliver(2, [incoming("ada", 2, { held: true }), incoming("bob", 2)]);
  await rig.pass(10_000);
  expect(suspended(rig)).toEqual([true, false]);
  await rig.start();
  await rig.pass(60_000);
  expect(suspended(rig)).toEqual([true, false]);
  await rig.list(3, "ada", "bob");
  await rig.pass(10_000);
  expect(suspended(rig)).toEqual([false, false]);
  // Nothing was stopped or started anew.
  expect(rig.machine.log.slice(before.length)).toEqual(["configure 1:1", "configure 1:1"]);
});

test("one that does not run, as after a reboot, starts only when it is no longer held", async () => {
  const rig = new Rig();
  await rig.start();
  await rig.deliver(1, [incoming("ada", 1), incoming("new", 1, { held: true })]);
  await rig.deliver(2, [incoming("ada", 2, { held: true }), incoming("new", 2, { held: true })]);
  rig.machine.made.get(1)!.phase = "stopped";
  await rig.pass(30_000);
  expect(rig.found).toEqual(["ada:stopped", "new:created"]);
  await rig.list(3, "ada", "new");
  await rig.pass(30_000);
  expect(rig.found).toEqual(["ada:running", "new:running"]);
  expect(suspended(rig)).toEqual([false, false]);
});

test("Status and the manager's document say that it is held; it does not expire, and a document without it ends it", async () => {
  const rig = new ApiRig("v2");
  await rig.start();
  const soon = Math.floor(rig.clock.now() / 1000) + 60;
  const held = spec("ada", { held: true, expiresAt: soon });
  await rig.json(CONTROL, "Deliver", [rig.document([held, spec("bob", { expiresAt: soon })])]);
  await rig.pass(900_000);
  const report = (await rig.json(CONTROL, "Status")) as { slivers: object[] };
  expect(report.slivers).toMatchObject([{ name: "ada", held: true, settled: true }]);
  expect(await rig.json(CONTROL, "GetDocument")).toMatchObject({ slivers: [{ name: "ada", held: true }] });
  await rig.json(CONTROL, "Deliver", [rig.document([])]);
  await rig.pass(20_000);
  expect(rig.machine.made.size).toBe(0);
});
