import type { ImageSettings } from "@nodeyard/config";
import { encodeImageBuild, type ImageBuildRecord, newImageBuild, paths } from "@nodeyard/model";
import { defined, hexId, messageOf } from "@nodeyard/runtime";
import { logEvent } from "@nodeyard/telemetry";
import {
  ensurePath,
  type HeldLock,
  isInterrupted,
  orUndefined,
  type Stat,
  TreeError,
  treeNow,
  treeSeconds,
} from "@nodeyard/tree";
import { baseName, bytesNeeded } from "../core/files.ts";
import { newestFirst, timeOf } from "../core/when.ts";
import type { Intent } from "../runs/disk.ts";
import { beginTrial } from "./canary.ts";
import { buildChoice } from "./choices.ts";
import { type BuilderContext, formatsWanted } from "./context.ts";
import { endOfLog } from "./progress.ts";
import {
  BUSY_MS,
  createUnder,
  type HeldBuild,
  heldBuild,
  readBuild,
  settleBuild,
  underLock,
} from "./records.ts";
import { runBuild } from "./run-build.ts";

/** Milliseconds until the next try when the disk was full. */
const AGAIN_MS = 60_000;

/**
 * How a try to build ended. `at`: the time of the next try, in milliseconds of tree time; undefined: the next change of the image
 * decides.
 */
export type BuildOutcome =
  | { readonly ended: "ready" | "failed"; readonly build: string }
  | { readonly ended: "not-now"; readonly why: string; readonly at?: number };

/**
 * Builds an image if a build is still due when the lock is held: another builder may have built it while this one waited. When
 * `signal` aborts, the record becomes `failed`, as after any other end without success. Rejects when the tree or the lock is
 * lost; what is left then is settled by the next sweep of any builder.
 */
export async function buildImage(
  context: BuilderContext,
  image: ImageSettings,
  signal: AbortSignal,
): Promise<BuildOutcome> {
  const { tree } = context;
  await ensurePath(tree, paths.imageBuilds(image.name));
  const outcome = await underLock(context, paths.imageBuildsLock(image.name), async (held) => {
    // The view may be behind the builder that released the lock just now.
    await context.view.resync("/nodepool/images");
    const left = await settleFormer(context, held, image.name);
    const request = await tree.stat(paths.imageRequest(image.name));
    const formats = formatsWanted(context, image.name);
    const now = treeNow(context);
    // A request is answered at once if it was made after the build began that a killed builder left. An older one waits for the back-off: its
    // build may be what kills the builder.
    const isNewer = request !== undefined && left !== undefined && request.mtime > left;
    const requestedAt = isNewer ? Number.POSITIVE_INFINITY : request?.mtime;
    const choice = buildChoice(context, image, now, requestedAt);
    if (!choice.build)
      return {
        ended: "not-now",
        why: choice.why,
        ...defined({ at: choice.at }),
      } as const;
    const builds = [...context.view.images.builds(image.name).values()];
    const lacking = await roomLacking(context, image, builds);
    if (lacking !== undefined) return { ended: "not-now", why: lacking, at: now + AGAIN_MS } as const;
    return begin(context, held, { image, formats, builds, request, cause: choice.cause }, signal);
  });
  if (typeof outcome !== "string") return outcome;
  return { ended: "not-now", why: outcome, at: treeNow(context) + BUSY_MS };
}

/**
 * Settles builds that a killed builder left, before another one: settled after it, they would count as failures since. A sweep could not, as
 * long as the session of who was killed held the lock. When the last of them had begun, milliseconds of tree time; undefined: there was none.
 */
async function settleFormer(
  context: BuilderContext,
  held: HeldLock,
  image: string,
): Promise<number | undefined> {
  const left = [...context.view.images.builds(image).values()].filter(({ state }) => state === "building");
  if (left.length === 0) return undefined;
  for (const { id } of left) {
    const found = await readBuild(context, image, id);
    if (found?.record.state === "building") await settleBuild(context, held, image, found);
  }
  await context.view.resync("/nodepool/images");
  return Math.max(...left.map(timeOf));
}

/** One build to make. */
interface Work {
  readonly image: ImageSettings;
  readonly formats: readonly string[];
  /** The builds that existed before. */
  readonly builds: readonly ImageBuildRecord[];
  /** The flag that requests the build; a repeated request changes its version. */
  readonly request: Stat | undefined;
  readonly cause: string;
}

/**
 * Why the disk has no room for a build; undefined: it has. The need is estimated from the last build on this host, so that a
 * build does not run for half an hour before it fails. An estimate: the disk may fill up meanwhile.
 */
async function roomLacking(
  context: BuilderContext,
  image: ImageSettings,
  builds: readonly ImageBuildRecord[],
) {
  const { disk, log } = context;
  const ids = new Set(
    newestFirst(builds)
      .filter(({ state }) => state === "ready")
      .map(({ id }) => id),
  );
  const last = (await disk.list()).find(({ intent }) => intent.image === image.name && ids.has(intent.build));
  const needed = bytesNeeded(last && (await disk.used(last.intent)));
  const free = await disk.free();
  if (free >= needed) return undefined;
  log.error(
    { image: image.name, folder: disk.folder, free, needed },
    "build not started: not enough free disk space",
  );
  return `disk-full: ${free} bytes free in ${disk.folder}, ${needed} needed`;
}

/** Makes the build: an intent file first, so that whatever is left after a crash has a known owner, then the record, then the program. */
async function begin(
  context: BuilderContext,
  held: HeldLock,
  work: Work,
  signal: AbortSignal,
): Promise<BuildOutcome> {
  const { random, disk, installation, log, counters, progress, settings } = context;
  const { image, formats } = work;
  const build = hexId(random);
  // The digest of the sources before the build begins: changes during the build cause another one.
  const digest = await context.sources.digest(image);
  const intent: Intent = {
    v: 1,
    installation,
    image: image.name,
    build,
    work: `${disk.folder}/.work/${baseName(image.name, build)}`,
    ...defined({ sources: digest }),
  };
  const page = progress.open({ kind: "build", image: image.name, build, provider: null });
  try {
    await disk.begin(intent);
    const record = await createRecord(context, held, work, build);
    logEvent(log, { event: "build.started", image: image.name, build, cause: work.cause, formats });
    const { folder } = disk;
    const order = {
      image,
      build,
      base: `${folder}/${baseName(image.name, build)}`,
      formats,
      work: intent.work,
      elementsDir: settings.elementsDir,
    };
    page.update({ total: await sizeBefore(context, image, work.builds) });
    const began = context.clock.monotonic();
    const failure = await runBuild(context, held, order, intent, page, signal).catch(messageOf);
    counters.level("builder.last_run", treeSeconds(context), { image: image.name });
    const ms = Math.round(context.clock.monotonic() - began);
    await measure(context, intent, formats, failure, ms);
    // Before the record says `ready`: nothing of the build writes to its files from then on.
    await disk.reclaim(intent);
    await finish(context, record, work, { failure, ms });
    if (failure === undefined) await clearRequest(context, image.name, work.request);
    counters.add("builder.builds", 1, { image: image.name, result: resultOf(failure) });
    return { ended: failure === undefined ? "ready" : "failed", build };
  } catch (error) {
    // The files stay: the reply to the last write may have been lost although the record is `ready`. If it is not, the next sweep removes
    // them.
    await disk.reclaim(intent).catch(() => {});
    throw error;
  } finally {
    page.end();
  }
}

/** Records the figures of a finished run. An error here must not fail the build. */
async function measure(
  { counters, disk, log }: BuilderContext,
  { image, build }: Intent,
  formats: readonly string[],
  failure: string | undefined,
  ms: number,
): Promise<void> {
  counters.time("builder.build", ms, { image, result: resultOf(failure) });
  if (failure !== undefined) return;
  for (const format of formats)
    try {
      const bytes = await disk.allocated(baseName(image, build), format);
      counters.level("builder.image_size", bytes, { image, format });
    } catch (error) {
      log.debug({ image, build, format, error: messageOf(error) }, "cannot determine the size of a build");
    }
}

function resultOf(failure: string | undefined): "ready" | "failed" {
  return failure === undefined ? "ready" : "failed";
}

/** Creates the record under the lock. When the reply is lost, the tree is read to see whether the record exists. */
async function createRecord(
  context: BuilderContext,
  held: HeldLock,
  { image, formats }: Work,
  build: string,
): Promise<HeldBuild> {
  const { tree, fqdn, builderId } = context;
  const record = newImageBuild(build, { builder: fqdn, builderId, formats }, treeSeconds(context));
  const path = paths.imageBuild(image.name, build);
  try {
    await createUnder(context, held, { op: "create", path, data: encodeImageBuild(record) });
  } catch (error) {
    if (!isInterrupted(error)) throw error;
    await tree.sync(path);
    if ((await tree.stat(path)) === undefined) throw error;
  }
  return heldBuild(context, held, image.name, record, 0);
}

/** Size of the newest ready build on this host, bytes, as an estimate for the progress display; null: there is none. */
async function sizeBefore(
  { disk }: BuilderContext,
  image: ImageSettings,
  builds: readonly ImageBuildRecord[],
) {
  const [newest] = newestFirst(builds.filter(({ state }) => state === "ready"));
  const local = (await disk.list()).find(
    ({ intent }) => intent.image === image.name && intent.build === newest?.id,
  );
  return local === undefined ? null : disk.used(local.intent);
}

/** Writes how the build ended. The trial begins before `ready`, because from then on launches may use the build. Files of a failed build are deleted. */
async function finish(
  context: BuilderContext,
  record: HeldBuild,
  { image }: Work,
  { failure, ms }: { readonly failure: string | undefined; readonly ms: number },
): Promise<void> {
  const { disk, log } = context;
  const { username, pythonPath, shellType } = image;
  const about = { image: image.name, build: record.id, ms };
  if (failure === undefined) {
    context.failures.delete(image.name);
    await beginTrial(context, image, record.id);
    await record.write({ state: "ready", username, pythonPath, shellType });
    logEvent(log, { event: "build.ready", ...about });
    return;
  }
  context.failures.set(image.name, { build: record.id, why: failure });
  const { lines = [] } = (await endOfLog(context, image.name, record.id)) ?? {};
  logEvent(log, { event: "build.failed", ...about, why: failure, last_lines: lines });
  await disk.remove(baseName(image.name, record.id));
  await record.write({ state: "failed", username, pythonPath, shellType });
}

/** Deletes the request that the build answers. A request that was made during the build has another version and stays. */
async function clearRequest({ tree, log }: BuilderContext, image: string, request: Stat | undefined) {
  if (request === undefined) return;
  try {
    await orUndefined(tree.delete(paths.imageRequest(image), { version: request.version }));
  } catch (error) {
    if (error instanceof TreeError && error.code === "tree.bad_version") return;
    // The request stays, so that the image is built once more: better than a request that is lost.
    log.warn({ image, error: messageOf(error) }, "cannot clear a build request");
  }
}
