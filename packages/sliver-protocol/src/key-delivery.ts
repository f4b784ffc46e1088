import type { SliverClient } from "./client.ts";
import type { NodeReport } from "./report.ts";
import { rotationsAfter, type SigningKeys } from "./signing-keys.ts";

/**
 * Brings a node to the present key set, one signed step after another; before the first document that a new key signs. True when it
 * was behind. Throws KeySetError when no chain leads there; rejects as the client does.
 */
export async function deliverKeys(
  client: SliverClient,
  keys: SigningKeys,
  { keySet }: Pick<NodeReport, "keySet">,
  signal: AbortSignal,
): Promise<boolean> {
  const steps = rotationsAfter(keys, keySet);
  for (const step of steps) await client.rotateKeys(step, signal);
  return steps.length > 0;
}
