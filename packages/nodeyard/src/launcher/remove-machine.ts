import { type ExternalId, runSteps, type Tag } from "@nodeyard/driver";
import type { Context, OpenProvider } from "./context.ts";

/** Unmakes the machine of a tag, with everything that was made for it. Rejects with a DriverError. */
export async function removeMachine(
  context: Context,
  open: OpenProvider,
  tag: Tag,
  externalId: ExternalId | null,
  signal: AbortSignal,
): Promise<void> {
  await runSteps((step) => open.provider.remove(tag, step), {
    clock: context.clock,
    signal,
    externalId,
    save: async () => {},
  });
}
