export { OPEN_ACL, Permission } from "./client/requests.ts";
export { connect, ZooKeeper } from "./client/zookeeper.ts";
export { type ConnectionTarget, parseConnectionString } from "./connection-string.ts";
export { SocketConnector, UnixConnector } from "./edge/socket-connector.ts";
export * from "./errors.ts";
export * from "./recipes/index.ts";
export type * from "./types.ts";
export * as wire from "./wire/index.ts";
export type { Acl, ClientInfo, Request, ResponseTo, Stat } from "./wire/messages.ts";
