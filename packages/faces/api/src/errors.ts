import { errorClass } from "@nodeyard/runtime";

/** The HTTP interface cannot listen on the configured address. A daemon ends by it at its start; by a reload it keeps what it has. */
export class ListenError extends errorClass("api.cannot_listen") {}

/** Not ready yet: the tree has not been read or the pools are not registered. Answered with 503 and Retry-After. */
export class NotReady extends errorClass("api.not_ready") {}
