import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { treeConformance } from "../../src/testing/index.ts";
import { zooKeeperTarget } from "../zookeeper/target.ts";
import { startBench } from "./bench.ts";

/** The contract as another process has it: our ZooKeeper tree against our own server. */
const run = { describe, test, beforeAll, afterAll, expect };

treeConformance(
  "the embedded tree over the wire",
  run,
  () =>
    zooKeeperTarget(async () => {
      const bench = await startBench({ limits: { minSessionTimeoutMs: 1_000 } });
      return { host: "127.0.0.1", port: bench.server.port ?? 0, stop: () => bench.close() };
    }),
  ["disconnect", "expire"],
);
