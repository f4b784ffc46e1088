export type { TlsFiles } from "./edge/agent.ts";
export { httpPlace } from "./edge/document-place.ts";
export { httpPost } from "./edge/post.ts";
export {
  NoKeysError,
  PlcFaultError,
  PlcTimeoutError,
  SourceAnswerError,
  SourceUnreachableError,
} from "./errors.ts";
export { type PlcOptions, PlcSource, type Post } from "./plc.ts";
export { type DocumentEndpoint, type Fetched, type SignedOptions, SignedSource } from "./signed.ts";
