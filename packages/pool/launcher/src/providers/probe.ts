import type { InventoryItem, ProbeResult, Provider } from "@nodeyard/driver";
import { type Clock, deadline, messageOf, NodeyardError } from "@nodeyard/runtime";

/** A look at a host, at most: drivers have shorter limits of their own (a host's `timeout`). */
const PROBE_MS = 120_000;

/**
 * A probe within its time. No answer is the answer "no". Rejects only with the reason of `parent`,
 * when that has aborted.
 */
export async function probeInTime(
  clock: Clock,
  provider: Provider,
  item: InventoryItem,
  parent: AbortSignal,
): Promise<ProbeResult> {
  const late = () => new NodeyardError("launcher.probe_silent", `no answer within ${PROBE_MS} ms`);
  using limit = deadline(clock, PROBE_MS, late, parent);
  try {
    return await provider.probe(item, limit.signal);
  } catch (error) {
    if (parent.aborted) throw error;
    return { alive: false, why: messageOf(error) };
  }
}
