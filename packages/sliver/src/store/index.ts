export { nodeFiles } from "./edge/node-files.ts";
export { ForeignStoreError, NewerStoreError, StoreWriteError } from "./errors.ts";
export type { OpenFile, StoreFiles } from "./files.ts";
export { type Loaded, Store } from "./store.ts";
