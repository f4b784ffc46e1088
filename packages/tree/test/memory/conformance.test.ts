import { seededRandom, systemClock } from "@nodeyard/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createMemoryTree, type MemoryTree } from "../../src/memory/index.ts";
import { type Target, treeConformance } from "../../src/testing/index.ts";

const run = { describe, test, beforeAll, afterAll, expect };

function memory(latencyMs?: readonly [number, number]): () => Promise<Target> {
  return async () => {
    const cluster = createMemoryTree({
      clock: systemClock,
      random: seededRandom(11),
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

treeConformance("in memory", run, memory(), ["disconnect", "expire"]);
// Packets take their time, so states are skipped and paths are seen at different moments.
treeConformance("in memory, slow and torn", run, memory([0, 3]), ["disconnect", "expire"]);
