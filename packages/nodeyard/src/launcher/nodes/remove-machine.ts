import { type ExternalId, runSteps, type Tag } from "@nodeyard/driver";
import type { Context, OpenProvider } from "../context.ts";
import { beforeEffect, fenceOf, guarded } from "../fence/effects.ts";
import type { Held } from "../fence/fence.ts";

/** Unmakes the machine of a tag, with everything that was made for it, under the lock of its node. Rejects with a DriverError or FenceLost. */
export async function removeMachine(
  context: Context,
  open: OpenProvider,
  held: Held,
  tag: Tag,
  externalId: ExternalId | null,
  signal: AbortSignal,
): Promise<void> {
  const before = () => beforeEffect(context, held);
  try {
    await runSteps((step) => guarded(open.provider.remove(tag, step), before), {
      clock: context.clock,
      signal,
      externalId,
      save: async () => {},
    });
  } catch (error) {
    throw fenceOf(error);
  }
}
