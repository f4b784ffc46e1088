export { readRequest, readResponse, writeRequest, writeResponse } from "./codec.ts";
export { FrameSplitter } from "./frames.ts";
export * from "./messages.ts";
export * from "./op-code.ts";
export { JuteReader } from "./reader.ts";
export { JuteWriter } from "./writer.ts";
