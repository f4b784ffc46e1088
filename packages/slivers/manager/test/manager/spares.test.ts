import { expect, test } from "vitest";
import { POLICIES } from "../../src/core/profiles.ts";
import type { Incoming } from "../../src/core/record.ts";
import { reportOf } from "../../src/manager/report.ts";
import { incoming } from "../core/arbitrary.ts";
import { Rig } from "./rig.ts";

const machineWith = (spares: number, highestIndex = 8) => ({
  machine: { policy: POLICIES.r0, cpu: 4000, link: 1_000_000_000, siblings: [], highestIndex, spares },
});

async function started(spares: number, highestIndex?: number): Promise<Rig> {
  const rig = new Rig({ ...machineWith(spares, highestIndex), capacity: { "cache.ccache": 8 } });
  await rig.start();
  return rig;
}

const like = (name: string, number: number, more: Partial<Incoming> = {}) => incoming(name, number, more);
/** Documents of one sliver after the other; each is there before the next comes. */
async function ask(rig: Rig, number: number, ...records: Incoming[]): Promise<readonly string[]> {
  rig.machine.log.length = 0;
  await rig.deliver(number, records);
  await rig.pass(2_000);
  return rig.machine.log;
}
/** Image of each spare that runs; the default one has no name. */
const spares = (rig: Rig) =>
  (reportOf(rig.manager).spares ?? []).map(({ image, phase }) => `${image ?? ""} ${phase}`);

test("a sliver becomes a spare's by one step, without a start, and another spare follows", async () => {
  const rig = await started(1);
  await ask(rig, 1, like("ada", 1));
  expect([rig.found, spares(rig)]).toEqual([["ada:running", "spare.2:running"], [" running"]]);
  const steps = await ask(rig, 2, like("ada", 2), like("bob", 2, { keys: ["ssh-ed25519 AAAA"] }));
  expect(steps).toEqual(["configure 2:2", "create 3:4", "configure 3:4", "start 3:4"]);
  expect(rig.machine.made.get(2)).toMatchObject({
    phase: "running",
    config: { name: "bob", incarnation: 2 },
  });
  expect(rig.machine.made.get(2)?.applied?.keys).toEqual(["ssh-ed25519 AAAA"]);
  expect(rig.found).toEqual(["ada:running", "bob:running", "spare.4:running"]);
  expect(rig.log).toContain("spare.2 became bob");
  expect(reportOf(rig.manager)).toMatchObject({ unlisted: [], slivers: [{ name: "ada" }, { name: "bob" }] });
  // It is ended as any other.
  await ask(rig, 3);
  expect(rig.found).toEqual(["spare.4:running"]);
});

test("it counts as running only when it has its own keys and limits, also in a new manager", async () => {
  const rig = await started(1);
  await ask(rig, 1, like("ada", 1));
  rig.machine.disturb = (step) => {
    if (step === "configure") throw new Error("the disk is full");
  };
  await ask(rig, 2, like("ada", 2), like("bob", 2));
  const bob = () => reportOf(rig.manager).slivers.find(({ name }) => name === "bob");
  expect(bob()).toMatchObject({ incarnation: 2, phase: "created", settled: false });
  await rig.start();
  expect(bob()).toMatchObject({ incarnation: 2, phase: "created" });
  rig.machine.disturb = () => undefined;
  await rig.pass(30_000);
  expect(bob()).toMatchObject({ incarnation: 2, phase: "running", settled: true });
  expect(rig.found).toEqual(["ada:running", "bob:running", "spare.4:running"]);
});

test("no login, guarantee, script or device of a sliver goes to a spare", async () => {
  const rig = await started(1);
  const rspec = {
    ...POLICIES.r0.defaults,
    cpuGuarantee: 500,
    netGuarantee: 8_000,
    cpuCap: 200,
    disk: 9_000_000,
  };
  await ask(rig, 1, like("ada", 1, { keys: ["ssh-ed25519 AAAA"], tags: { of: "ada" }, rspec }));
  const [spare] = [...rig.machine.made.values()].filter(({ config }) => config.name.startsWith("spare."));
  expect(spare?.config).toMatchObject({ keys: [], initscript: "", enabled: true, generation: 0 });
  expect(spare?.config.effective).toMatchObject({ cpuGuarantee: 0, netGuarantee: 0, disk: 65_536 });
  // As its sshd says to programs.
  expect(spare?.config.effective.cpuCap).toBe(500);
  expect(rig.state.spares[0]).not.toHaveProperty("tags");
});

test.each<[string, Partial<Incoming>]>([
  ["another image", { image: "other" }],
  ["containers inside", { nesting: true }],
  ["a cache", { caches: ["ccache"] }],
  ["a script at its start", { initscript: "echo" }],
  ["another number of processors", { rspec: { ...POLICIES.r0.defaults, cpuCap: 1_000 } }],
  ["cores of its own", { rspec: { ...POLICIES.r0.defaults, cpuCores: 1 } }],
])("a sliver with %s becomes no spare's", async (_, more) => {
  const rig = await started(1);
  await ask(rig, 1, like("ada", 1));
  await ask(rig, 2, like("ada", 2), like("bob", 2, more));
  const bob = [...rig.machine.made.values()].find(({ config }) => config.name === "bob");
  expect(bob?.config.incarnation).toBeGreaterThan(2);
});

test("the kinds are those that were asked for last, over a restart", async () => {
  const rig = await started(2);
  await ask(rig, 1, like("ada", 1, { image: "a" }));
  await ask(rig, 2, like("ada", 2, { image: "a" }), like("bob", 2, { image: "b" }));
  expect(spares(rig)).toEqual(["a running", "b running"]);
  await rig.start();
  await ask(rig, 3, like("cyd", 3, { image: "b" }));
  expect(spares(rig)).toEqual(["a running", "b running"]);
  await ask(rig, 4, like("cyd", 4, { image: "b" }), like("dan", 4, { image: "c" }));
  expect(spares(rig)).toEqual(["b running", "c running"]);
  expect(rig.found).toHaveLength(4);
});

test("without the setting they end, and a machine that is full has none", async () => {
  const rig = await started(2, 3);
  await ask(rig, 1, like("ada", 1, { image: "a" }));
  await ask(rig, 2, like("ada", 2, { image: "a" }), like("bob", 2, { image: "b" }));
  expect(rig.found).toEqual(["ada:running", "bob:running", "spare.2:running"]);
  // Its place is wanted by one that cannot become it.
  await ask(rig, 3, ...["ada", "bob", "cyd"].map((name) => like(name, 3, { image: name })));
  await rig.pass(10_000);
  expect(rig.found).toEqual(["ada:running", "bob:running", "cyd:running"]);
  await ask(rig, 4, like("cyd", 4, { image: "cyd" }));
  await ask(rig, 5, like("cyd", 5, { image: "cyd" }), like("dan", 5, { image: "d" }));
  expect(rig.found).toContain(`spare.${rig.state.spares[0]?.local.incarnation}:running`);
  const without = new Rig(machineWith(0, 3));
  for (const [index, made] of rig.machine.made) without.machine.made.set(index, made);
  Object.assign(without, { files: rig.files });
  await rig.kill();
  await without.start();
  expect(without.found).toEqual(["cyd:running", "dan:running"]);
});

test("a sliver that waits for the index of a spare that is still ending costs no second spare", async () => {
  const rig = await started(2, 4);
  const [ada, bob, cyd] = [
    ["ada", "a"],
    ["bob", "b"],
    ["cyd", "c"],
  ].map(
    ([name, image]) =>
      (number: number) =>
        like(name!, number, { image: image! }),
  );
  await ask(rig, 1, ada!(1));
  await ask(rig, 2, ada!(2), bob!(2));
  expect(spares(rig)).toEqual(["a running", "b running"]);
  let end = () => {};
  rig.machine.disturb = (step) =>
    step === "destroy" ? new Promise<void>((resolve) => (end = resolve)) : undefined;
  await ask(rig, 3, ada!(3), bob!(3), cyd!(3));
  for (let syncs = 0; syncs < 3; syncs++) {
    rig.manager.requestSync();
    await rig.settle();
  }
  expect(spares(rig)).toEqual(["b running"]);
  end();
  await rig.pass(10_000);
  expect(rig.found).toEqual(["ada:running", "bob:running", "cyd:running", expect.stringContaining("spare.")]);
  expect(spares(rig)).toEqual(["b running"]);
});

test("a spare that is still being started, that failed or whose image is a former one is not handed out", async () => {
  const rig = await started(1);
  let go = () => {};
  rig.machine.disturb = (step, { incarnation }) =>
    step === "start" && incarnation === 2 ? new Promise<void>((resolve) => (go = resolve)) : undefined;
  await ask(rig, 1, like("ada", 1));
  // As a sliver whose sshd does not answer yet.
  rig.machine.made.get(2)!.phase = "running";
  await ask(rig, 2, like("ada", 2), like("bob", 2));
  expect(rig.found).toEqual(expect.arrayContaining(["bob:running", "spare.2:running"]));
  go();
  rig.machine.disturb = (step, { incarnation }) => {
    if (step === "start" && rig.state.spares.some(({ local }) => local.incarnation === incarnation))
      throw new Error("no sshd answers");
  };
  await rig.pass(1_000);
  await ask(rig, 3, like("cyd", 3));
  await rig.pass(10_000);
  expect([rig.found, spares(rig)]).toEqual([["cyd:running"], []]);

  rig.machine.disturb = () => undefined;
  await ask(rig, 4, like("cyd", 4), like("dan", 4));
  const before = rig.state.spares[0]!;
  rig.machine.outdated.add(before.local.incarnation);
  await rig.pass(10_000);
  expect(rig.state.spares).toHaveLength(1);
  expect(rig.state.spares[0]?.local.incarnation).toBeGreaterThan(before.local.incarnation);
  expect([rig.found.length, spares(rig)]).toEqual([3, [" running"]]);
});

test("after a lost store they are ended with the next document, which needs no permission for them", async () => {
  const rig = await started(4);
  for (const number of [1, 2, 3, 4])
    await ask(rig, number, like("ada", number, { image: `i${number}`, generation: number }));
  expect(rig.found).toHaveLength(5);
  const after = new Rig(machineWith(0));
  for (const [index, made] of rig.machine.made) after.machine.made.set(index, made);
  await rig.kill();
  await after.start();
  expect(reportOf(after.manager)).toMatchObject({ safeMode: true, unlisted: ["ada"] });
  await after.deliver(5, [like("ada", 5, { image: "i4", generation: 4 })], { removes: 0 });
  await after.pass(1_000);
  expect(after.found).toEqual(["ada:running"]);
});

test("spares are made when slivers are", async () => {
  const rig = await started(2);
  const steps = await ask(rig, 1, like("ada", 1), like("bob", 1));
  const created = steps.filter((step) => step.startsWith("create"));
  expect(created).toEqual(["create 1:1", "create 2:2", "create 3:3", "create 4:4"]);
  expect(steps.indexOf("create 3:3")).toBeGreaterThan(steps.indexOf("start 2:2"));
});
