import { describe, expect, test } from "vitest";
import { MemoryBackEnd } from "../../../../../testing/slivers/memory-back-end.ts";
import { backEndConformance } from "./conformance.ts";

backEndConformance(
  "memory",
  async () => {
    const backEnd = new MemoryBackEnd();
    return {
      backEnd,
      restart: async () => backEnd.restart(),
      suspended: async (index) => backEnd.made.get(index)?.suspended === true,
      leftovers: async () => [...backEnd.made.keys()].map(String),
      stop: async () => undefined,
    };
  },
  { describe, test, expect },
);
