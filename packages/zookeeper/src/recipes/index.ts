export { contenderPrefix, holderOf, sortContenders } from "./contenders.ts";
export { type ElectionOptions, stand } from "./election.ts";
export {
  contend,
  type Entry,
  enter,
  type LineCall,
  type LineClient,
  leave,
  type Place,
  withdraw,
} from "./line.ts";
export { type HeldLock, LockLost, type LockOptions, LockTimeout, lock, tryLock } from "./lock.ts";
export { ClientSource } from "./tree-cache/client-source.ts";
export { Follower, type FollowerOptions } from "./tree-cache/follower.ts";
export { type CachedZnode, openTreeCache, type TreeCache } from "./tree-cache/tree-cache.ts";
export type {
  Interest,
  Source,
  SourceEvent,
  TreeCacheChange,
  TreeCacheOptions,
} from "./tree-cache/types.ts";
