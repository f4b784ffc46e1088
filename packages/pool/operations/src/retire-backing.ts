import { backingData, RETIRED, RecordError, slotPlace, slotsFolder } from "@nodeyard/model";
import { NodeyardError } from "@nodeyard/runtime";
import { type Tree, TreeError } from "@nodeyard/tree";
import type { OperationHandles } from "./handles.ts";
import { readNode } from "./listing.ts";
import { unreadableNode } from "./node-state.ts";

/**
 * After so long without a launcher that serves a provider, any launcher gives its backing nodes back, milliseconds: longer than a
 * restart takes.
 */
export const LEFT_MS = 600_000;

/** A backing node cannot be retired as asked; the message says why and what to do. */
class SlotError extends NodeyardError {}

/**
 * Retires the backing node that a node lives on, or the node itself when it is one. Returns the backing node's id. `why`: for the
 * log of its owner. Rejects with SlotError or NodeOperationError. Twice is once.
 */
export async function retireNode(handles: OperationHandles, id: string, why: string): Promise<string> {
  const record = await readNode(handles, id).catch((error: unknown) => {
    throw error instanceof RecordError ? unreadableNode(id, error) : error;
  });
  if (record === undefined)
    throw new SlotError("slot.no_such_node", `node ${id} does not exist: see nodeyard list`);
  const backing = backingData(record) === undefined ? slotPlace(record)?.backing : id;
  if (backing === undefined)
    throw new SlotError("slot.none", `node ${id} has no slot and carries none: use nodeyard delete or hold`);
  await retireBacking(handles.tree, backing, why);
  return backing;
}

/**
 * Retires a backing node: it gets no new slots, its nodes are used to their end, and then it is deleted. Any process that finds it broken
 * may call this; the owner writes the record. Does nothing when the backing node is gone or retired already.
 */
export async function retireBacking(tree: Tree, backing: string, why: string): Promise<void> {
  const data = Buffer.from(JSON.stringify({ v: 1, why }));
  try {
    await tree.create(`${slotsFolder(backing)}/${RETIRED}`, data);
  } catch (error) {
    if (!(error instanceof TreeError)) throw error;
    if (error.code !== "tree.node_exists" && error.code !== "tree.no_node") throw error;
  }
}
