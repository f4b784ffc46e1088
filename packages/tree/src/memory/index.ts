export type { CallInfo } from "./call.ts";
export {
  createMemoryTree,
  type MemoryCluster,
  type MemoryConnectOptions,
  type MemoryTree,
  type MemoryTreeOptions,
} from "./cluster.ts";
export type { Fault } from "./options.ts";
export type { AppliedWrite } from "./server.ts";
