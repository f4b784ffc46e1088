import { expect, onTestFinished, test } from "vitest";
import { requireRoot } from "../../../../../testing/skipped.ts";
import { killedAt, loopsIn, POINTS, SCRIPT } from "./killed.ts";
import { buildProcesses, ImageSite, until } from "./site.ts";

// Each point mostly waits, for the build and for sweeps: several at once, Vitest's `maxConcurrency`. The limit is of its waits together;
// with the storms of kills beside it two cores are slow.
test.for(Array.from({ length: POINTS }, (_, point) => point))(
  "killed at point %i",
  { concurrent: true },
  async (point, context) => {
    const site = new ImageSite(SCRIPT);
    context.onTestFinished(() => site.close());
    await killedAt(site, point);
  },
);

test.skipIf(requireRoot())("a loop device outlives the builder, and goes with its next start", async () => {
  const own = new ImageSite(`${SCRIPT}\nsleep 60`);
  onTestFinished(() => own.close());
  const first = await own.up();
  await until(() => loopsIn(own.folder).length === 1, "the build has a loop device", first);
  await first.kill("SIGKILL");
  await until(() => buildProcesses(own).length === 0, "no process of the build is left", undefined, 200);
  expect(loopsIn(own.folder)).toHaveLength(1);
  // Its start is over when clients are let in.
  const second = await own.up();
  expect(loopsIn(own.folder)).toEqual([]);
  expect(own.work()).toEqual([]);
  await second.kill("SIGTERM");
});
