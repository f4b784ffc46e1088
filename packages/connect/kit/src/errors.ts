import { errorClass } from "@nodeyard/runtime";

/** `connect.yaml`, or a file that it names, cannot be used as it is. */
export class ConnectConfigError extends errorClass("connect.config") {}

/** A program could not be started on a node, or its end is not known. */
export class OnNodeError extends errorClass("connect.on_node") {}

/** The other system refused a call, or does not answer. */
export class SystemError extends errorClass("connect.system") {}
