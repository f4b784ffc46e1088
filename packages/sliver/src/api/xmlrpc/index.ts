export { XmlRpcError } from "./errors.ts";
export { type MethodCall, parseCall, parseResponse } from "./parse.ts";
export { MAX_TEXT } from "./tree.ts";
export { XmlRpcDouble, XmlRpcTime, type XmlRpcValue } from "./values.ts";
export { writeCall, writeFault, writeResponse } from "./write.ts";
