export { httpPost } from "./edge/post.ts";
export { PlcFaultError, PlcTimeoutError } from "./errors.ts";
export { type PlcOptions, PlcSource, type Post } from "./plc.ts";
