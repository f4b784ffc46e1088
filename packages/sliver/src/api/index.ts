export type { Audit, AuditEntry } from "./audit.ts";
export { type Dialect, nativeDialect, wireDialect } from "./dialects/index.ts";
export { type Call, Dispatcher } from "./dispatch.ts";
export { AccountSockets, type SocketAccount } from "./edge/account-sockets.ts";
export { listenTcp } from "./edge/tcp.ts";
export { NotLoopbackError } from "./errors.ts";
export { Fault } from "./fault.ts";
export { type ApiRequest, type ApiResponse, createHandler, type Handler } from "./handler.ts";
export { ANONYMOUS, callerOfToken, type TokenAccount } from "./tokens.ts";
