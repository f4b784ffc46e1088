import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { openEmbeddedTree } from "../../src/embedded/index.ts";
import { treeConformance } from "../suite/index.ts";

treeConformance("embedded", async () => {
  const folder = await mkdtemp(join(tmpdir(), "nodeyard-conformance-"));
  const owner = await openEmbeddedTree({ folder, clock: systemClock, random: systemRandom });
  return {
    clock: systemClock,
    connect: () => owner.connect(),
    stop: async () => {
      await owner.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
});
