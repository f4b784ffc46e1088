import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { expect } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import { buildProcesses, type ImageSite, until } from "./site.ts";

/** Points over the time that a build and its upload take. */
export const POINTS = 20;
const SPAN_MS = 3_000;
/** Milliseconds for two sweeps and the end of a session, and between looks: each starts two processes. */
const SETTLE_MS = patient(150_000);
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
  // By its log a build was under way. The last lines may be lost with it: the build may have ended, and its upload follows.
  if (count(first.err, "build.started") > count(first.err, "build.ready"))
    await until(() => /"event":"(build.abandoned|upload.\w+)"/.test(second.err), "it is settled", second);
  // A request after it is the way round the back-off of a build that did not end.
  await own.run("image-build", "small");
  // With a limit of its own, so that its log is shown when that never happens.
  await until(() => second.err.includes("upload ready"), "an upload is ready", second, 2_400);
  // By time, since looks take long on a busy machine, and the test's own limit would not say what was left.
  const late = performance.now() + SETTLE_MS;
  let rest = await unsettled(own);
  while (rest.length > 0 && performance.now() < late) {
    await pause(SETTLE_LOOK_MS);
    rest = await unsettled(own);
  }
  expect(rest, second.err).toEqual([]);
  const left = (await own.builds()).map(({ id }) => id);
  expect(left).toEqual(expect.arrayContaining(ready));
}

function count(log: string, event: string): number {
  return log.split(`"event":"${event}"`).length - 1;
}

/** Records that are not ready, and what no record lists. */
async function unsettled(own: ImageSite): Promise<readonly string[]> {
  const local = [...own.work(), ...loopsIn(own.folder)];
  if (local.length > 0) return local;
  const [builds, uploads] = await Promise.all([own.builds(), own.uploads()]);
  const listed = builds.flatMap(({ id }) => [`${id}.build`, `${id}.raw`]);
  const uploaded = own.uploaded();
  return [
    ...[...builds, ...uploads].filter(({ state }) => state !== "ready").map((one) => JSON.stringify(one)),
    ...own.files().filter((name) => !listed.includes(name)),
    ...(uploaded.length === 2 * uploads.length ? [] : uploaded),
    ...own.work(),
    ...loopsIn(own.folder),
  ];
}

/** Files beneath a folder that a loop device is of. */
export function loopsIn(folder: string): readonly string[] {
  const devices = execFileSync("losetup", ["--list", "--noheadings", "--output", "BACK-FILE"], {
    encoding: "utf8",
  });
  return devices.split("\n").filter((file) => file.startsWith(`${folder}/`));
}
