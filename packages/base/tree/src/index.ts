export type * from "./contract.ts";
export {
  type EmbeddedOptions,
  type EmbeddedTree,
  type LeavingTree,
  openEmbeddedTree,
  openLeaving,
  putBack,
  restoreEmbeddedTree,
  StoreRefused,
  socketPath,
} from "./embedded/index.ts";
export * from "./errors.ts";
export * from "./fence.ts";
export * from "./held-record.ts";
export * from "./helpers.ts";
export * from "./interrupted.ts";
export * from "./lock.ts";
export * from "./memory/index.ts";
export { readDataFolder, type Stopped, writeDataFolder } from "./moving/edge/data-folder.ts";
export { MoveRefused } from "./moving/errors.ts";
export { requestBytes } from "./request-size.ts";
export {
  type AttachOptions,
  attachEmbeddedTree,
  DEFAULT_LIMITS,
  type Forwarder,
  ListenRefused,
  NotServed,
  type ServerLimits,
  type ServerTls,
  startForwarder,
  startTreeServer,
  type TcpOptions,
  type TreeServer,
  type TreeServerOptions,
} from "./server/index.ts";
export type { WriteEnded } from "./under-way.ts";
export * from "./zookeeper/index.ts";
