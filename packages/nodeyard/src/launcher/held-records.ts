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
import { type Fence, type Held, HeldRecord, type RecordKind } from "../coordination/index.ts";
import type { Handles } from "./handles.ts";
import type { Ledgers } from "./limits/ledger.ts";

/** For what writes records under their locks. */
export interface RecordHandles extends Handles {
  readonly fence: Fence;
  readonly ledgers: Ledgers;
}

export type HeldNode = HeldRecord<NodeRecord, NodePatch>;
export type HeldRequest = HeldRecord<RequestRecord, RequestPatch>;

const nodeKind: RecordKind<NodeRecord, NodePatch> = {
  decode: decodeNode,
  encode: encodeNode,
  change: changeNode,
  sameGround: (ours, theirs) =>
    ours.state === theirs.state &&
    ours.allocatedTo === theirs.allocatedTo &&
    ours.provider === theirs.provider,
};

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

export function heldNode(
  context: RecordHandles,
  held: Held,
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
    commit: (before, after, ops) => context.ledgers.change(before, after, ops),
  });
}

export function heldRequest(
  context: RecordHandles,
  held: Held,
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
