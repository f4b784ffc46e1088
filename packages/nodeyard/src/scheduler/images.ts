import type { State } from "./state.ts";
import type { LocalPool } from "./types.ts";

/** Whether a launch of a label has an image to boot. */
export type ImageVerdict =
  | { readonly kind: "ready" }
  | { readonly kind: "waits"; readonly image: string; readonly facts: Readonly<Record<string, unknown>> }
  /** Waiting is of no use: nobody makes it. */
  | { readonly kind: "never"; readonly reason: string };

const READY: ImageVerdict = { kind: "ready" };

/**
 * An image that is being made, or that a registered builder may make, is waited for: to decline what comes before the first
 * upload is a Weakness of spec launcher.md 2.3. Without any of these nobody will ever make it.
 */
export function imageOf(state: State, pool: LocalPool, label: string): ImageVerdict {
  const image = pool.images.get(label);
  if (image === undefined) return READY;
  const facts = state.images.get(image);
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

/** Everyone who waits for the image is looked at again: it is seldom that anything of an image changes. */
export function wakeForImage(state: State, image: string): void {
  for (const id of state.imageWaiting.get(image) ?? []) state.recheck.add(id);
  state.imageWaiting.delete(image);
  for (const { policy } of state.pools.values())
    for (const [label, name] of policy.images) if (name === image) state.dirtyLabels.add(label);
}
