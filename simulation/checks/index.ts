export { Broken } from "./broken.ts";
export { LogCheck, type Moved, type Znode } from "./log-check.ts";
