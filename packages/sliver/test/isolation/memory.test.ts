import { describe, expect, test } from "vitest";
import { MemoryBackEnd } from "../../../../testing/slivers/memory-back-end.ts";
import { backEndConformance } from "./conformance.ts";

backEndConformance(
  "memory",
  async () => {
    const backEnd = new MemoryBackEnd();
    return {
      backEnd,
      restart: async () => {
        const again = new MemoryBackEnd();
        for (const [index, made] of backEnd.made) again.made.set(index, made);
        return again;
      },
      leftovers: async () => [...backEnd.made.keys()].map(String),
      stop: async () => undefined,
    };
  },
  { describe, test, expect },
);
