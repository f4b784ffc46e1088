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
export { openTreeCache } from "./tree-cache/tree-cache.ts";
export type {
  CachedZnode,
  Interest,
  TreeCache,
  TreeCacheChange,
  TreeCacheOptions,
} from "./tree-cache/types.ts";
