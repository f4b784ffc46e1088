import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { buildProcesses, type ImageSite, until } from "./site.ts";

/** Points over the time that a build and its upload take. */
export const POINTS = 20;
const SPAN_MS = 3_000;
/** Two sweeps and the end of a session. Each look starts two processes, so there is time between looks. */
const SETTLE_LOOKS = 140;
const SETTLE_LOOK_MS = 1_000;

// As a build tool is: children in groups of their own, what is temporary, a mount and a loop device.
export const SCRIPT = `
setsid sleep 300 &
mkdir "$TMPDIR/mnt"; [ "$(id -u)" = 0 ] && mount -t tmpfs none "$TMPDIR/mnt" && : > "$TMPDIR/mnt/rest"
if [ "$(id -u)" = 0 ]; then truncate -s 1M "$TMPDIR/disk"; losetup --find "$TMPDIR/disk"; fi
for part in 1 2 3 4 5 6 7 8; do head -c 2000000 /dev/zero >> "$DIB_IMAGE_FILENAME.raw"; sleep 0.1; done`;

/**
 * kill -9 of the builder at one of these points: no process of the build stays, and after a restart nothing does that is not
 * listed, and no image is lost that was ready.
 */
export async function killedAt(own: ImageSite, point: number): Promise<void> {
  const first = await own.up();
  await new Promise((resolve) => setTimeout(resolve, (point * SPAN_MS) / POINTS));
  const ready = (await own.builds()).filter(({ state }) => state === "ready").map(({ id }) => id);
  await first.kill("SIGKILL");
  // The kernel ends them, with no help of ours: a minute of looks is far more than it needs.
  await until(() => buildProcesses(own).length === 0, "no process of the build is left", undefined, 1_200);
  expect(readFileSync("/proc/mounts", "utf8")).not.toContain(own.folder);
  const second = await own.up();
  // A request is the way round the back-off of a build that did not end.
  await own.run("image-build", "small");
  // With a limit of its own, so that its log is shown when that never happens.
  await until(() => second.err.includes("upload ready"), "an upload is ready", second, 2_400);
  await until(
    () => isSettled(own),
    "every record ready, and nothing that is not listed",
    second,
    SETTLE_LOOKS,
    SETTLE_LOOK_MS,
  );
  const left = (await own.builds()).map(({ id }) => id);
  expect(left).toEqual(expect.arrayContaining(ready));
}

async function isSettled(own: ImageSite): Promise<boolean> {
  if (own.work().length > 0 || loopsIn(own.folder).length > 0) return false;
  const [builds, uploads] = await Promise.all([own.builds(), own.uploads()]);
  const listed = builds.flatMap(({ id }) => [`${id}.build`, `${id}.raw`]);
  return (
    builds.every(({ state }) => state === "ready") &&
    uploads.every(({ state }) => state === "ready") &&
    own.files().every((name) => listed.includes(name)) &&
    own.work().length === 0 &&
    loopsIn(own.folder).length === 0 &&
    own.uploaded().length === 2 * uploads.length
  );
}

/** Files beneath a folder that a loop device is of. */
export function loopsIn(folder: string): readonly string[] {
  const devices = execFileSync("losetup", ["--list", "--noheadings", "--output", "BACK-FILE"], {
    encoding: "utf8",
  });
  return devices.split("\n").filter((file) => file.startsWith(`${folder}/`));
}
