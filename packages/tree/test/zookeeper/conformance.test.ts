import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireZooKeeper, startZooKeeper } from "../../../../testing/zookeeper/index.ts";
import { treeConformance } from "../../src/testing/index.ts";
import { zooKeeperTarget } from "./target.ts";

describe.skipIf(requireZooKeeper())("the contract", () => {
  const run = { describe, test, beforeAll, afterAll, expect };
  treeConformance("on a real ZooKeeper", run, () => zooKeeperTarget(startZooKeeper), [
    "disconnect",
    "expire",
  ]);
});
