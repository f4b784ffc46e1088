import { errorClass } from "@nodeyard/runtime";

/** The HTTP interface cannot listen on the configured address. */
export class ListenError extends errorClass("api.cannot_listen") {}

/** Not ready yet: the tree has not been read or the pools are not registered. */
export class NotReady extends errorClass("api.not_ready") {}
