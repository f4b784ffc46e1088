/**
 * Node's HTTP. An ESM import reads every export, also `WebSocket`, which loads all of Node's `fetch`: a tenth of the processor time that a
 * command takes to start.
 */
export const nodeHttp = () => process.getBuiltinModule("node:http");

/** Node's HTTP by TLS, loaded where it is used. */
export const nodeHttps = () => process.getBuiltinModule("node:https");
