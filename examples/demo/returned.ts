import { followNodes } from "@nodeyard/operations";
import { openTree } from "@nodeyard/process";
import { deadline, NodeyardError } from "@nodeyard/runtime";
import type { Machine } from "@nodeyard/telemetry/machine";

const LIMIT_MS = 30_000;

/** Resolves when each node is gone or ready for the next client; rejects after half a minute with the remaining nodes. */
export async function untilReturned(
  stateFolder: string,
  machine: Machine,
  ids: readonly string[],
): Promise<void> {
  const tree = await openTree({ stateFolder }, machine);
  const following = followNodes(tree, ids, ({ state }) => state === "ready");
  const limit = deadline(machine.clock, LIMIT_MS, () => {
    const left = [...following.left()].map(([id, state]) => `${id} (${state})`).join(", ");
    return new NodeyardError("demo.not_returned", `nodes not returned within ${LIMIT_MS / 1000} s: ${left}`);
  });
  const late = new Promise<never>((_, reject) => {
    limit.signal.addEventListener("abort", () => reject(limit.signal.reason));
  });
  try {
    await Promise.race([following.done, late]);
  } finally {
    limit.cancel();
    await following.close();
    await tree.close();
  }
}
