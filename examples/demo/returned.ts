import { decodeNode, paths } from "@nodeyard/model";
import { deadline, NodeyardError } from "@nodeyard/runtime";
import type { Machine } from "../../packages/nodeyard/src/machine/index.ts";
import { openTree } from "../../packages/nodeyard/src/process/index.ts";

const LIMIT_MS = 30_000;

/** Resolves when each node is gone or ready for the next client; rejects after half a minute with the remaining nodes. */
export async function untilReturned(
  stateFolder: string,
  machine: Machine,
  ids: readonly string[],
): Promise<void> {
  const tree = await openTree({ stateFolder }, machine);
  const busy = new Map(ids.map((id) => [id, "unknown"]));
  const done = Promise.withResolvers<void>();
  const feed = tree.feed(paths.nodes, {
    interest: (path) => (busy.has(nameOf(path)) ? "data" : "none"),
    onChange(change) {
      if (change.type === "synced") {
        // A node that the first walk did not show does not exist.
        for (const [id, state] of busy) if (state === "unknown") busy.delete(id);
      } else if (change.type === "remove") busy.delete(nameOf(change.path));
      else if (change.type === "put" && change.data !== undefined) {
        const id = nameOf(change.path);
        const { state } = decodeNode(id, change.data);
        if (state === "ready") busy.delete(id);
        else busy.set(id, state);
      }
      if (busy.size === 0) done.resolve();
    },
  });
  const limit = deadline(machine.clock, LIMIT_MS, () => {
    const left = [...busy].map(([id, state]) => `${id} (${state})`).join(", ");
    return new NodeyardError("demo.not_returned", `nodes not returned within ${LIMIT_MS / 1000} s: ${left}`);
  });
  limit.signal.addEventListener("abort", () => done.reject(limit.signal.reason));
  try {
    await done.promise;
  } finally {
    limit.cancel();
    await feed.close();
    await tree.close();
  }
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
