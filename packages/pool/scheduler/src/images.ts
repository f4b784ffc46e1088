import type { State, Turn } from "./state.ts";
import type { LocalPool } from "./types.ts";
import { recheckAll } from "./waiting.ts";
import { labelLine, type Waiting } from "./waits.ts";

/** Whether a launch of a label has an image to boot. */
type ImageVerdict =
  | { readonly kind: "ready" }
  | { readonly kind: "waits"; readonly image: string; readonly facts: Readonly<Record<string, unknown>> }
  /** No builder makes the image, so that waiting is of no use. */
  | { readonly kind: "never"; readonly reason: string };

const READY: ImageVerdict = { kind: "ready" };

/**
 * An idle builder starts a missing build or upload within a minute. When all builders have been idle for this long, milliseconds, the
 * image is in none of their configurations, or it is paused.
 */
const BUILDERS_IDLE_MS = 600_000;

/**
 * A request waits for an image that is being made, or that a registered builder may make; Nodepool's launcher declines requests that
 * come before the first upload (docs/design/scheduler.md). Builders register without a list of their images, so whether one makes this
 * image shows only in what builders do.
 */
export function imageOf(state: State, pool: LocalPool, label: string): ImageVerdict {
  const image = pool.images.get(label);
  if (image === undefined) return READY;
  const facts = state.images.facts.get(image);
  const { provider } = pool;
  if (facts?.ready.has(provider)) return READY;
  const builds = facts?.builds ?? { building: 0, ready: 0, failed: 0 };
  const { builders } = state.registry;
  const stage = facts?.uploading.has(provider)
    ? "uploading"
    : builds.building > 0
      ? "building"
      : builds.ready > 0
        ? "built"
        : "none";
  if (stage === "none" && builders === 0) {
    const reason = `images are not available (${image} has no upload at ${provider}, and no builder is registered)`;
    return { kind: "never", reason };
  }
  const paused = facts?.paused ?? false;
  if (state.images.givenUp.has(image)) {
    const step = stage === "built" ? "uploads" : "builds";
    const why = paused ? "it is paused" : `no registered builder ${step} it`;
    return {
      kind: "never",
      reason: `images are not available (${image} has no upload at ${provider}, and ${why})`,
    };
  }
  return {
    kind: "waits",
    image,
    facts: { label, image, provider, stage, failed_builds: builds.failed, paused, builders },
  };
}

/** The first of these labels whose image is not there; undefined: all are. */
export function missingImage(
  state: State,
  pool: LocalPool,
  labels: readonly string[],
): (Exclude<ImageVerdict, { kind: "ready" }> & { readonly label: string }) | undefined {
  if (pool.images.size === 0) return undefined;
  for (const label of labels) {
    const found = imageOf(state, pool, label);
    if (found.kind !== "ready") return { ...found, label };
  }
  return undefined;
}

/**
 * Makes the request wait for the image. Returns when the wait ends if builders stay idle, steady milliseconds; requests that join later
 * share that time.
 */
export function waitForImage(state: State, { steady }: Turn, image: string, waiting: Waiting): number {
  state.waits.join("image", image, waiting);
  const at = state.timers.get("image", image) ?? steady + BUILDERS_IDLE_MS;
  state.timers.set("image", image, at);
  return at;
}

/** The builders' time is over: declines all waiting requests, unless a builder works, or builds of this image have failed. */
export function onImageDue(state: State, { steady }: Turn, image: string): void {
  if (state.waits.line("image", image).size === 0) return;
  const tried = (state.images.facts.get(image)?.builds.failed ?? 0) > 0;
  const busy = [...state.images.facts.values()].some(
    ({ builds, uploading }) => builds.building + uploading.size > 0,
  );
  if (tried || busy) return state.timers.set("image", image, steady + BUILDERS_IDLE_MS);
  wakeForImage(state, image);
  state.images.givenUp.add(image);
}

/** A builder came or went: it may build what the others do not. */
export function onBuilders(state: State): void {
  for (const image of [...state.waits.names("image"), ...state.images.givenUp]) wakeForImage(state, image);
}

/** Looks again at all requests that wait for the image; changes of an image are rare. */
export function wakeForImage(state: State, image: string): void {
  state.timers.delete("image", image);
  state.images.givenUp.delete(image);
  recheckAll(state, "image", image);
  for (const { policy, blocked } of state.pools.values())
    for (const [label, name] of policy.images) {
      if (name !== image) continue;
      state.todo.labels.add(label);
      // A request that waits for quota, or for an offering, stands in the line of its label: it may have nothing to boot any more.
      recheckAll(state, "label", labelLine(policy.key, label));
      // A head whose image is gone waits for that now, and no longer before the others.
      if (blocked?.waiting.record.nodeTypes.includes(label)) state.todo.pools.add(policy.key);
    }
}
