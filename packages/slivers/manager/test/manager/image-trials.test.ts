import { expect, test } from "vitest";
import { ImageTrials } from "../../src/core/image-trials.ts";
import { POLICIES } from "../../src/core/profiles.ts";
import { reportOf } from "../../src/manager/report.ts";
import { Rig } from "./rig.ts";

const MANY = 60;
const names = Array.from({ length: MANY }, (_, at) => `s${at}`);

/** Slivers of an image with a version on trial. */
async function tryVersion(works: boolean): Promise<Rig> {
  const link = 1_000_000_000;
  const machine = { policy: POLICIES.r0, cpu: 4000, link, siblings: [], highestIndex: MANY };
  const rig = new Rig({ machine });
  const trials = new ImageTrials({ share: 0.25, launches: 10, maxAgeMs: 86_400_000 }, () => rig.clock.now());
  rig.machine.versions = trials;
  for (const version of ["old", "new"]) trials.offer("default", version);
  rig.machine.disturb = (step, { index }) => {
    const { madeOf } = rig.machine.made.get(index) ?? {};
    if (step === "start" && madeOf?.digest === "new" && !works) throw new Error("no answer");
  };
  await rig.start();
  await rig.list(1, ...names);
  await rig.pass(60_000);
  return rig;
}

const versionsOf = (rig: Rig) => new Set([...rig.machine.made.values()].map(({ madeOf }) => madeOf?.digest));

test("slivers that a new version of their image fails are made again of the proven one, and it is rolled back", async () => {
  const rig = await tryVersion(false);
  expect(rig.found).toEqual(names.map((name) => `${name}:running`).sort());
  expect(versionsOf(rig)).toEqual(new Set(["old"]));
  const { images, slivers } = reportOf(rig.manager);
  expect(images).toMatchObject([{ image: "default", version: "new", verdict: "rolled-back" }]);
  expect(images![0]!.why).toMatch(/^(\d) of \1 launches failed, against 0 of/);
  expect(slivers.filter(({ error }) => error !== undefined)).toEqual([]);
  // A trial costs each of them one start.
  const starts = rig.machine.log.filter((line) => line.startsWith("destroy"));
  expect(new Set(starts).size).toBe(starts.length);
  expect(starts.length).toBeLessThan(10);
});

test("a new version that works serves some slivers, whose reports say so, and then all", async () => {
  const rig = await tryVersion(true);
  const { images, slivers } = reportOf(rig.manager);
  expect(images).toMatchObject([{ version: "new", verdict: "promoted" }]);
  const tried = slivers.filter(({ triedVersion }) => triedVersion === "new");
  expect(tried.length).toBeGreaterThanOrEqual(10);
  expect(tried.length).toBeLessThan(MANY / 2);
  const [later] = [rig.machine.versions!.choose("default", 1_000)];
  expect(later).toMatchObject({ digest: "new", tried: false });
});
