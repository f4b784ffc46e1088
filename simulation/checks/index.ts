export { Broken } from "./broken.ts";
export { takenOf } from "./limits.ts";
export { LogCheck, type Moved, type Znode } from "./log-check.ts";
