export { FrameSplitter } from "./frames.ts";
export type * from "./messages.ts";
export * from "./op-code.ts";
export { JuteReader } from "./reader.ts";
export {
  readAcl,
  readStat,
  readWatcherEvent,
  writeAcl,
  writeStat,
  writeWatcherEvent,
} from "./records.ts";
export { readRequest, writeRequest } from "./requests.ts";
export { readResponse, writeResponse } from "./responses.ts";
export {
  readConnectRequest,
  readConnectResponse,
  readReplyHeader,
  readRequestHeader,
  writeConnectRequest,
  writeConnectResponse,
  writeReplyHeader,
  writeRequestHeader,
} from "./session.ts";
export { JuteWriter } from "./writer.ts";
