import { describe } from "vitest";
import { requireZooKeeper, startZooKeeper } from "../../../../../testing/zookeeper/index.ts";
import { treeConformance } from "../suite/index.ts";
import { zooKeeperTarget } from "./target.ts";

describe.skipIf(requireZooKeeper())("the contract", () => {
  treeConformance("on a real ZooKeeper", () => zooKeeperTarget(startZooKeeper), ["disconnect", "expire"]);
});
