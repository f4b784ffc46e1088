export type * from "./contract.ts";
export {
  type EmbeddedOptions,
  type EmbeddedTree,
  openEmbeddedTree,
  restoreEmbeddedTree,
  StoreRefused,
  socketPath,
} from "./embedded/index.ts";
export { ensurePath } from "./ensure-path.ts";
export * from "./errors.ts";
export {
  type HeldLock,
  type LockOptions,
  LockTimeout,
  lineOf,
  lock,
  type TryLockOptions,
  tryLock,
} from "./lock.ts";
export * from "./memory/index.ts";
export { requestBytes } from "./request-size.ts";
export {
  type AttachOptions,
  attachEmbeddedTree,
  DEFAULT_LIMITS,
  ListenRefused,
  NotServed,
  type ServerLimits,
  type ServerTls,
  startTreeServer,
  type TcpOptions,
  type TreeServer,
  type TreeServerOptions,
  unixConnector,
} from "./server/index.ts";
export { treeNow, treeSeconds } from "./tree-time.ts";
export type { WriteEnded } from "./under-way.ts";
export * from "./zookeeper/index.ts";
