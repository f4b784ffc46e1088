export { connectZooKeeperTree, type ZooKeeperTreeOptions } from "./connect.ts";
