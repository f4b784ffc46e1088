import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { buildProcesses, ImageSite, until } from "./site.ts";

/**
 * kill -9 of the builder at many points of a build and an upload: no process of the build stays, and after a restart nothing
 * does that is not listed. The points are spread over the time that the whole takes.
 */
const POINTS = 20;
const SPAN_MS = 3_000;

// As a build tool is: children in groups of their own, what is temporary, a mount and a loop device.
const SCRIPT = `
setsid sleep 300 &
mkdir "$TMPDIR/mnt"; [ "$(id -u)" = 0 ] && mount -t tmpfs none "$TMPDIR/mnt" && : > "$TMPDIR/mnt/rest"
if [ "$(id -u)" = 0 ]; then truncate -s 1M "$TMPDIR/disk"; losetup --find "$TMPDIR/disk"; fi
for part in 1 2 3 4 5 6 7 8; do head -c 2000000 /dev/zero >> "$DIB_IMAGE_FILENAME.raw"; sleep 0.1; done`;

let site: ImageSite | undefined;
afterEach(() => site?.close());

test.each(Array.from({ length: POINTS }, (_, point) => [point] as const))(
  "killed at point %i",
  async (point) => {
    site = new ImageSite(SCRIPT);
    const own = site;
    const first = await own.up();
    await new Promise((resolve) => setTimeout(resolve, (point * SPAN_MS) / POINTS));
    const ready = (await own.builds()).filter(({ state }) => state === "ready").map(({ id }) => id);
    await first.kill("SIGKILL");
    // The kernel ends them, with no help of ours: ten seconds of looks are far more than it needs.
    await until(() => buildProcesses(own).length === 0, "no process of the build is left", undefined, 200);
    expect(readFileSync("/proc/mounts", "utf8")).not.toContain(own.folder);
    const second = await own.up();
    // A request is the way round the back-off of a build that did not end.
    await own.run("image-build", "small");
    await second.told("an upload is ready");
    await until(
      async () => {
        const builds = await own.builds();
        const uploads = await own.uploads();
        const listed = builds.flatMap(({ id }) => [`${id}.build`, `${id}.raw`]);
        return (
          builds.every(({ state }) => state === "ready") &&
          uploads.every(({ state }) => state === "ready") &&
          own.files().every((name) => listed.includes(name)) &&
          own.work().length === 0 &&
          loopsIn(own.folder).length === 0 &&
          own.uploaded().length === 2 * uploads.length
        );
      },
      "every record ready, and nothing that is not listed",
      second,
    );
    const left = (await own.builds()).map(({ id }) => id);
    expect(left).toEqual(expect.arrayContaining(ready));
  },
  120_000,
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

/** Files beneath a folder that a loop device is of. */
function loopsIn(folder: string): readonly string[] {
  const devices = execFileSync("losetup", ["--list", "--noheadings", "--output", "BACK-FILE"], {
    encoding: "utf8",
  });
  return devices.split("\n").filter((file) => file.startsWith(`${folder}/`));
}
