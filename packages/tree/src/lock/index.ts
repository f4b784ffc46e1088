export { LockTimeout } from "./errors.ts";
export { type HeldLock, type LockOptions, lock, type TryLockOptions, tryLock } from "./lock.ts";
