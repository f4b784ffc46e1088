export { Broken } from "./broken.ts";
export type { Effect } from "./effect.ts";
export { takenOf } from "./limits.ts";
export { Locks } from "./locks.ts";
export { LogCheck, type Moved, type Setting } from "./log-check.ts";
export type { IsDead } from "./order.ts";
export type { Znode } from "./replay.ts";
export type { ExpectedFields } from "./usable.ts";
