import type { ImageSettings } from "@nodeyard/config";
import {
  CANARIES,
  type Canary,
  type CanaryEnd,
  canaryPath,
  decodeCanary,
  encodeCanary,
} from "@nodeyard/model";
import { judgeTrial, messageOf, noBoots } from "@nodeyard/runtime";
import { logEvent } from "@nodeyard/telemetry";
import { ensurePath, orUndefined, TreeError, treeNow } from "@nodeyard/tree";
import type { BuilderContext } from "./context.ts";

/** The most tries to write a record to which launchers add their results at the same time. */
const TRIES = 10;

/**
 * Puts a build on trial. Call it before the record says `ready`, so that no launcher boots the build without knowing of the trial.
 * There is no trial without another build that serves launches in the meantime.
 */
export async function beginTrial(
  context: BuilderContext,
  image: ImageSettings,
  build: string,
): Promise<void> {
  const { settings, log } = context;
  const rules = settings.images.get(image.name)?.canary ?? null;
  if (rules === null) return;
  const now = treeNow(context);
  const begun = await change(context, image.name, (before) => {
    const builds = context.view.images.builds(image.name);
    const old = before?.candidate ?? null;
    // A build whose trial had not ended is rejected, since it was never proven; builds that are gone are forgotten.
    const rejected = [...(before?.rejected ?? []), ...(old === null ? [] : [old])].filter((id) =>
      builds.has(id),
    );
    const others = [...builds.values()].filter(
      ({ id, state }) => state === "ready" && !rejected.includes(id),
    );
    if (others.length === 0) return undefined;
    const why = "a newer build replaced it before its trial ended";
    return {
      candidate: build,
      since: now,
      share: rules.share,
      tallies: { candidate: noBoots, stable: noBoots },
      rejected,
      last: old === null ? (before?.last ?? null) : { build: old, verdict: "dropped", why, at: now },
    };
  });
  if (begun) logEvent(log, { event: "trial.started", image: image.name, build, share: rules.share });
}

/** Ends the trials that have shown enough. Failures are logged; the next sweep retries. */
export async function judgeTrials(context: BuilderContext): Promise<void> {
  const { settings, view, log } = context;
  for (const [image, { canary: rules }] of settings.images) {
    if (!view.own.has(canaryPath(image))) continue;
    try {
      // Trials were taken out of the configuration: without the record all builds count.
      if (rules === null) await orUndefined(context.tree.delete(canaryPath(image)));
      else await judge(context, image, rules);
    } catch (error) {
      log.warn({ image, error: messageOf(error) }, "cannot judge the trial of a build; will retry");
    }
  }
}

/** Ends the trial of one image when its rules say so. The event is logged only by the builder whose write won. */
async function judge(
  context: BuilderContext,
  image: string,
  rules: NonNullable<ImageSettings["canary"]>,
): Promise<void> {
  const { view, log, counters } = context;
  const now = treeNow(context);
  // Of the attempt that was written.
  let end: CanaryEnd | undefined;
  const written = await change(context, image, (canary) => {
    end = undefined;
    if (canary?.candidate == null) return undefined;
    const build = canary.candidate;
    const state = view.images.builds(image).get(build)?.state;
    if (state === "building") return undefined;
    const found =
      state === "ready"
        ? judgeTrial(canary, rules, now)
        : ({ verdict: "dropped", why: `its build is ${state ?? "gone"}` } as const);
    if (found.verdict === "wait") return undefined;
    end = { build, verdict: found.verdict, why: found.why, at: now };
    const rejected = found.verdict === "rolled-back" ? [...canary.rejected, build] : canary.rejected;
    return { ...canary, candidate: null, rejected, last: end };
  });
  if (!written || end === undefined) return;
  counters.add("builder.canaries", 1, { image, verdict: end.verdict });
  const about = { image, build: end.build, why: end.why };
  if (end.verdict === "rolled-back") logEvent(log, { event: "trial.failed", ...about });
  else logEvent(log, { event: "trial.ended", ...about, verdict: end.verdict });
}

/**
 * Changes the record by compare-and-set. Returns false when `next` wanted no change, or after too many concurrent writes: the
 * next sweep tries again.
 */
async function change(
  { tree }: BuilderContext,
  image: string,
  next: (before: Canary | undefined) => Canary | undefined,
): Promise<boolean> {
  const path = canaryPath(image);
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const found = await orUndefined(tree.get(path));
    const after = next(found && decodeCanary(image, found.data));
    if (after === undefined) return false;
    try {
      if (found === undefined) {
        await ensurePath(tree, CANARIES);
        await tree.create(path, encodeCanary(after));
      } else await tree.set(path, encodeCanary(after, found.data), { version: found.stat.version });
      return true;
    } catch (error) {
      const raced =
        error instanceof TreeError &&
        ["tree.bad_version", "tree.node_exists", "tree.no_node"].includes(error.code);
      if (!raced) throw error;
    }
  }
  return false;
}
