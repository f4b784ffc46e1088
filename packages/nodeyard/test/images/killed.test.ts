import { afterEach, expect, test } from "vitest";
import { killedAt, loopsIn, POINTS, SCRIPT } from "./killed.ts";
import { buildProcesses, ImageSite, until } from "./site.ts";

let site: ImageSite | undefined;
afterEach(() => site?.close());

test.each(Array.from({ length: POINTS }, (_, point) => [point] as const))(
  "killed at point %i",
  async (point) => {
    site = new ImageSite(SCRIPT);
    await killedAt(site, point);
  },
  // Its waits together; with the storms of kills beside it two cores are slow.
  400_000,
);

test.skipIf(process.getuid?.() !== 0)(
  "a loop device outlives the builder, and goes with its next start",
  async () => {
    site = new ImageSite(`${SCRIPT}\nsleep 60`);
    const own = site;
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
  },
);
