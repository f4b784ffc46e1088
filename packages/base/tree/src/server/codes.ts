import { wire } from "@nodeyard/zookeeper";
import type { TreeError } from "../errors.ts";
import type { WatchEventType } from "./watches.ts";

const { ErrorCode, EventType } = wire;

/** Wire error codes by the codes of tree errors. A code that is missing here stands for a failure of the store. */
const WIRE_CODES: Readonly<Record<string, number>> = {
  "tree.no_node": ErrorCode.noNode,
  "tree.node_exists": ErrorCode.nodeExists,
  "tree.bad_version": ErrorCode.badVersion,
  "tree.not_empty": ErrorCode.notEmpty,
  "tree.no_children_for_ephemerals": ErrorCode.noChildrenForEphemerals,
  "tree.bad_arguments": ErrorCode.badArguments,
  "tree.not_allowed": ErrorCode.noAuth,
  "tree.invalid_access_list": ErrorCode.invalidAcl,
  "tree.session_expired": ErrorCode.sessionExpired,
};

/** A failure of the store is SYSTEMERROR: the client does not learn whether the write took effect. */
export function wireCode(error: TreeError): number {
  return WIRE_CODES[error.code] ?? ErrorCode.systemError;
}

/** The numbers of events in ZooKeeper's protocol. */
export const WIRE_EVENTS: Readonly<Record<WatchEventType, number>> = {
  created: EventType.nodeCreated,
  deleted: EventType.nodeDeleted,
  changed: EventType.nodeDataChanged,
  childrenChanged: EventType.nodeChildrenChanged,
};
