import { abortable, DriverError } from "@nodeyard/driver";
import { deadline, messageOf } from "@nodeyard/runtime";
import type { Context, ServingPool } from "../context.ts";
import type { HeldNode } from "../fence/records.ts";
import { tagOf } from "./attempt.ts";

/** For a machine to become what its next user may expect, milliseconds; where it lent, that is usually within a second. */
const HANDOVER_MS = 30_000;

/**
 * Before a ready node, which is allocated and locked by us, is delivered: its driver gets back what its machine lent, where it lends.
 * Undefined when that is done, else why it is not to be delivered. Rejects when `signal` aborts.
 */
export async function handOver(
  context: Context,
  pool: ServingPool,
  node: HeldNode,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { slots, provider } = pool.open;
  const { handover } = provider.offers ?? {};
  if (slots === undefined && handover === undefined) return undefined;
  const late = () => new DriverError("timeout", `its machine was not prepared within ${HANDOVER_MS} ms`);
  const limit = deadline(context.clock, HANDOVER_MS, late, signal);
  try {
    const { externalId } = node.record;
    const ready =
      slots?.recall(node, limit.signal) ??
      handover?.ready(tagOf(context, pool, node), { signal: limit.signal, externalId });
    await abortable(ready ?? Promise.resolve(), limit.signal);
    return undefined;
  } catch (error) {
    if (signal.aborted) throw error;
    return messageOf(error);
  } finally {
    limit.cancel();
  }
}
