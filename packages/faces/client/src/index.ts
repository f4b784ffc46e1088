export { Client } from "./client.ts";
export { type ConnectOptions, connect } from "./connect.ts";
export type { Transport, TransportInit } from "./edge/transport.ts";
export { CallRefused, ClientError, LeaseFailed, LeaseLost } from "./errors.ts";
export type { EventQuery, EventRows, Put, YardEvent } from "./events.ts";
export type { Operations, Problem } from "./generated/operations.ts";
export type { Lease, LeaseRow, LeaseWish, NodeAccess, Verdict } from "./lease.ts";
export type {
  Arguments,
  CallOptions,
  Given,
  ListId,
  OperationId,
  QueryOf,
  Reply,
  RowOf,
} from "./operation.ts";
