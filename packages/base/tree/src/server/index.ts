export { type AttachOptions, attachEmbeddedTree } from "./edge/attach.ts";
export { ListenRefused, NotServed } from "./errors.ts";
export { type Forwarder, type ForwarderOptions, startForwarder } from "./forward.ts";
export { DEFAULT_LIMITS, type ServerLimits } from "./limits.ts";
export type { ServerTls, TcpOptions } from "./peer.ts";
export { startTreeServer, type TreeServer, type TreeServerOptions } from "./server.ts";
