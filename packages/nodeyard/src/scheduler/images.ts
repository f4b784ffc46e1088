import type { State, Turn } from "./state.ts";
import type { LocalPool } from "./types.ts";
import { recheckAll } from "./waiting.ts";
import { labelLine, type Waiting } from "./waits.ts";

/** Whether a launch of a label has an image to boot. */
type ImageVerdict =
  | { readonly kind: "ready" }
  | { readonly kind: "waits"; readonly image: string; readonly facts: Readonly<Record<string, unknown>> }
  /** Waiting is of no use: nobody makes it. */
  | { readonly kind: "never"; readonly reason: string };

const READY: ImageVerdict = { kind: "ready" };

/**
 * A builder that has nothing else to do begins within a minute to build, or to upload, what is missing. One that has begun nothing
 * for this long, milliseconds, while no image is being made does not have this one in its configuration, or is told to leave it alone.
 */
const BUILDERS_IDLE_MS = 600_000;

/**
 * An image that is being made, or that a registered builder may make, is waited for: the old launcher declines what comes before the
 * first upload (docs/design/scheduler.md). Without any of these nobody will ever make it. A component says of a builder that it is there,
 * not what it builds, so that this shows by what builders do.
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

/** The request waits for the image; so does whoever comes later, until builders were idle for long: steady milliseconds. */
export function waitForImage(state: State, { steady }: Turn, image: string, waiting: Waiting): number {
  state.waits.join("image", image, waiting);
  const at = state.timers.get("image", image) ?? steady + BUILDERS_IDLE_MS;
  state.timers.set("image", image, at);
  return at;
}

/** Builders had their time: whoever waits is declined, unless they work on something, or this image is tried and fails. */
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

/** Everyone who waits for the image is looked at again: it is seldom that anything of an image changes. */
export function wakeForImage(state: State, image: string): void {
  state.timers.delete("image", image);
  state.images.givenUp.delete(image);
  recheckAll(state, "image", image);
  for (const { policy, blocked } of state.pools.values())
    for (const [label, name] of policy.images) {
      if (name !== image) continue;
      state.todo.labels.add(label);
      // Who waits for quota, or for an offering, stands in the line of its label: it may have nothing to boot any more.
      recheckAll(state, "label", labelLine(policy.key, label));
      // A head whose image is gone waits for that now, and no longer before the others.
      if (blocked?.waiting.record.nodeTypes.includes(label)) state.todo.pools.add(policy.key);
    }
}
