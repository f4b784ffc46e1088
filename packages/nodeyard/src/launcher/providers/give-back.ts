import { messageOf } from "@nodeyard/runtime";
import type { Context, SlotSource } from "../context.ts";

/** Gives back the backing nodes of a provider that is served no more. `ended`: nothing of it is left to be done here. */
export async function giveBack(
  { log }: Pick<Context, "log">,
  provider: string,
  slots: SlotSource,
  ended: () => void,
): Promise<void> {
  const drains = await slots.drain(ended).catch((error: unknown) => {
    log.warn({ provider, error: messageOf(error) }, "cannot read who else serves a provider");
    return false;
  });
  if (!drains) ended();
}
