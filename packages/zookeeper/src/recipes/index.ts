export { type Contender, contenderPrefix, holderOf, parseContender, sortContenders } from "./contenders.ts";
export { candidates, currentLeader, type ElectionOptions, stand } from "./election.ts";
export { LockLost, LockTimeout } from "./errors.ts";
export type { HeldLock } from "./held-lock.ts";
export { type ContenderDetails, inspectLock, listContenders } from "./inspect.ts";
export { lock, tryLock } from "./lock.ts";
export type { LockOptions, RecipeClient } from "./options.ts";
export { openTreeCache } from "./tree-cache/tree-cache.ts";
export type {
  CachedZnode,
  Interest,
  TreeCache,
  TreeCacheChange,
  TreeCacheOptions,
} from "./tree-cache/types.ts";
