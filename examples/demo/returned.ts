import { decodeNode, type NodeRecord, paths } from "@nodeyard/model";
import { openTree } from "@nodeyard/process";
import { deadline, NodeyardError } from "@nodeyard/runtime";
import type { Machine } from "@nodeyard/telemetry/machine";
import type { Tree } from "@nodeyard/tree";

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

/** Nodes that are waited for by events. */
interface FollowedNodes {
  /** Resolves when none is left; rejects by `close` before, and when the feed ends for good. */
  readonly done: Promise<void>;
  /** Nodes that are not in the wanted state yet, with their states. */
  left(): ReadonlyMap<string, string>;
  close(): Promise<void>;
}

/**
 * Follows nodes until each is as `isDone` wants its record, or gone. One feed for all; a node that is done is not read again. An
 * unreadable record is not done.
 */
function followNodes(
  tree: Tree,
  ids: readonly string[],
  isDone: (record: NodeRecord) => boolean,
): FollowedNodes {
  const unseen = "unknown";
  const left = new Map(ids.map((id) => [id, unseen]));
  const done = Promise.withResolvers<void>();
  done.promise.catch(() => {});
  const nameOf = (path: string) => path.slice(paths.nodes.length + 1);
  const stateOf = (id: string, data: Uint8Array) => {
    try {
      const record = decodeNode(id, data);
      return isDone(record) ? undefined : record.state;
    } catch {
      return "unreadable";
    }
  };
  const feed = tree.feed(paths.nodes, {
    interest: (path) => (left.has(nameOf(path)) ? "data" : "none"),
    onChange(change) {
      if (change.type === "synced") {
        // A node that the first walk did not show does not exist.
        for (const [id, state] of left) if (state === unseen) left.delete(id);
      } else if (change.type === "remove") left.delete(nameOf(change.path));
      else if (change.type === "put" && change.data !== undefined) {
        const id = nameOf(change.path);
        const state = stateOf(id, change.data);
        if (state === undefined) left.delete(id);
        else if (left.has(id)) left.set(id, state);
      }
      if (left.size === 0) done.resolve();
    },
  });
  feed.synced.catch(done.reject);
  return {
    done: done.promise,
    left: () => left,
    async close() {
      done.reject(new Error("these nodes are no longer followed"));
      await feed.close();
    },
  };
}
