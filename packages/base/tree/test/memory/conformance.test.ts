import { seededRandom, systemClock } from "@nodeyard/runtime";
import { createMemoryTree, type MemoryTree } from "../../src/memory/index.ts";
import { type Target, treeConformance } from "../suite/index.ts";

/** Longer than a connection takes to come back, so that it comes back to a server that is behind. */
const LAG_MS = 60;

function memory(latencyMs?: readonly [number, number], followers = 0): () => Promise<Target> {
  return async () => {
    const random = seededRandom(11);
    const cluster = createMemoryTree({
      clock: systemClock,
      random,
      followers: { count: followers, lagMs: () => random.float() * LAG_MS },
      reconnectMs: [5, 20],
      ...(latencyMs && { latencyMs }),
    });
    return {
      clock: systemClock,
      connect: async () => cluster.connect(),
      disconnect: (tree) => (tree as MemoryTree).disconnect(),
      expire: (tree) => (tree as MemoryTree).expire(),
      stop: async () => {},
    };
  };
}

treeConformance("in memory", memory(), ["disconnect", "expire"]);
// Packets take their time, so states are skipped and paths are seen at different moments.
treeConformance("in memory, slow and torn", memory([0, 3]), ["disconnect", "expire"]);
// Connections go to servers that are behind, each reconnect to another one.
treeConformance("in memory, with followers", memory([0, 3], 2), ["disconnect", "expire"]);
