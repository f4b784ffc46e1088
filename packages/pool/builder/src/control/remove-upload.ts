import { beforeEffect } from "@nodeyard/coordination";
import { type ExternalId, type ImageTag, runSteps, type StepContext } from "@nodeyard/driver";
import type { HeldLock } from "@nodeyard/tree";
import type { BuilderContext, ImageProvider } from "./context.ts";

/**
 * Deletes in the cloud whatever carries the tag; each step only while the lock is held. Rejects with the driver's error, or
 * FenceLost. Twice: nothing.
 */
export async function removeFromCloud(
  context: BuilderContext,
  provider: ImageProvider,
  held: HeldLock,
  tag: ImageTag,
  externalId: ExternalId | null,
  signal: AbortSignal,
): Promise<void> {
  const remove = (step: StepContext) => provider.store.remove(tag, step);
  await runSteps(remove, {
    clock: context.clock,
    before: () => beforeEffect(context, held),
    signal,
    externalId,
    save: async () => {},
  });
}

/** What a record may hold of it: other shapes than ids are of no cloud. */
export function externalIdOf(value: unknown): ExternalId | null {
  if (typeof value === "string") return value;
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as ExternalId) : null;
}
