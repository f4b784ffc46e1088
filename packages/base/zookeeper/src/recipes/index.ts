export * from "./contenders.ts";
export * from "./election.ts";
export * from "./line.ts";
export { type HeldLock, LockLost, type LockOptions, LockTimeout, lock, tryLock } from "./lock.ts";
export * from "./tree-cache/client-source.ts";
export * from "./tree-cache/follower.ts";
export { type CachedZnode, openTreeCache, type TreeCache } from "./tree-cache/tree-cache.ts";
export type * from "./tree-cache/types.ts";
