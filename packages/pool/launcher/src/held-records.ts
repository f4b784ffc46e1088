import {
  changeNode,
  changeRequest,
  decodeNode,
  decodeRequest,
  encodeNode,
  encodeRequest,
  type NodePatch,
  type NodeRecord,
  paths,
  type RequestPatch,
  type RequestRecord,
} from "@nodeyard/model";
import { type Fence, type HeldLock, HeldRecord, type RecordKind } from "@nodeyard/tree";
import type { Handles } from "./handles.ts";
import type { Ledgers } from "./limits/ledger.ts";

/** What code needs that writes records under their locks. */
export interface RecordHandles extends Handles {
  /** Locks of nodes and requests, and whether they may still be acted upon. */
  readonly fence: Fence;
  /** Counts every change of a node record against the limits that it concerns. */
  readonly ledgers: Ledgers;
}

/** A node record under a lock of this launcher. */
export type HeldNode = HeldRecord<NodeRecord, NodePatch>;
/** A request record under a lock of this launcher. */
export type HeldRequest = HeldRecord<RequestRecord, RequestPatch>;

/**
 * When another client has changed the record meanwhile, `sameGround` says whether our write may be merged into its version. It may if the
 * fields are the same on which the decision to write was based; a client may set a comment at any moment. A state that was written once more
 * has another time: its age, and so a hold, begins anew.
 */
const nodeKind: RecordKind<NodeRecord, NodePatch> = {
  decode: decodeNode,
  encode: encodeNode,
  change: changeNode,
  sameGround: (ours, theirs) =>
    ours.state === theirs.state &&
    ours.stateTime === theirs.stateTime &&
    ours.allocatedTo === theirs.allocatedTo &&
    ours.provider === theirs.provider,
};

/** A request is pinned by its state, what it asks for, and who has declined it: Zuul may change its priority while it is served. */
const requestKind: RecordKind<RequestRecord, RequestPatch> = {
  decode: decodeRequest,
  encode: encodeRequest,
  change: changeRequest,
  sameGround: (ours, theirs) =>
    ours.state === theirs.state &&
    ours.declinedBy.length === theirs.declinedBy.length &&
    ours.nodeTypes.length === theirs.nodeTypes.length &&
    ours.nodeTypes.every((label, index) => label === theirs.nodeTypes[index]),
};

/**
 * A node record for writing; a write that changes what the node takes of a limit changes the ledgers, too. `record` and `version` may be
 * the view's, since the first write checks them.
 */
export function heldNode(
  context: RecordHandles,
  held: HeldLock,
  id: string,
  record: NodeRecord,
  version: number,
): HeldNode {
  return new HeldRecord(context.tree, context.clock, nodeKind, {
    id,
    path: paths.node(id),
    held,
    record,
    version,
    counted: (before, after, ops) => context.ledgers.counted(before, after, ops),
  });
}

/** The same for a request, whose record takes nothing of a limit. */
export function heldRequest(
  context: RecordHandles,
  held: HeldLock,
  id: string,
  record: RequestRecord,
  version: number,
): HeldRequest {
  return new HeldRecord(context.tree, context.clock, requestKind, {
    id,
    path: paths.request(id),
    held,
    record,
    version,
  });
}
