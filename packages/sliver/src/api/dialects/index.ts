export type { Dialect } from "./dialect.ts";
export { nativeDialect } from "./native.ts";
export { wireDialect } from "./wire.ts";
