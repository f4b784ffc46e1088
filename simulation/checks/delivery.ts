import type { AppliedWrite } from "@nodeyard/tree";
import { Broken } from "./broken.ts";
import type { LogCheck } from "./log-check.ts";

/** Somebody who only looks whether a lock is free is gone from its line after this long, milliseconds: a session's end, at worst. */
const LOOK_MS = 20_000;

/** A nodeset is whole, of one pool, in the order that was asked for, free of locks, and nobody else's. */
export function checkFulfilled(
  check: LogCheck,
  id: string,
  data: Readonly<Record<string, unknown>>,
  write: AppliedWrite,
): void {
  const wanted = data.node_types as string[];
  const nodes = data.nodes as string[];
  if (nodes.length !== wanted.length)
    throw new Broken("a nodeset is delivered whole", write, `${id}: ${nodes.length} of ${wanted.length}`);
  const pools = new Set<string>();
  const zones = new Set<unknown>();
  for (const [index, nodeId] of nodes.entries()) {
    const node = check.nodes.get(nodeId)?.data;
    if (node?.state !== "ready" || node.allocated_to !== id) {
      const what = `${id}: ${nodeId} is ${JSON.stringify(node)}`;
      throw new Broken("a request gets ready nodes of its own", write, what);
    }
    if (!(node.type as string[]).includes(wanted[index]!))
      throw new Broken("nodes stand in the order of node_types", write, `${id}: ${nodeId}`);
    checkUnlocked(check, id, nodeId, write);
    const other = check.given.get(nodeId);
    if (other !== undefined && check.requests.has(other))
      throw new Broken("a node is leased to one request at most", write, `${nodeId}: ${other} and ${id}`);
    check.given.set(nodeId, id);
    pools.add(`${node.provider}/${node.pool}`);
    zones.add(node.az);
  }
  if (pools.size > 1) throw new Broken("a nodeset comes from one pool", write, [...pools].join(", "));
  if (pools.has(check.zoned ?? "") && zones.size > 1)
    throw new Broken("a nodeset is of one zone", write, `${id}: ${[...zones].join(", ")}`);
}

/**
 * Our own contender must be gone. Another launcher may be looking whether the lock is free, as the contract has it (create,
 * list, go): its contender stands for a round trip, or until its session ends if it died in between, and never for longer.
 */
function checkUnlocked(check: LogCheck, id: string, node: string, write: AppliedWrite): void {
  for (const { name, client, since } of check.nodeLocks.line(node)) {
    if (client !== write.client && check.now - since <= LOOK_MS) continue;
    const what = `${id}: ${node} has ${name} of ${client}, ${Math.round(check.now - since)} ms old`;
    throw new Broken("nodes are unlocked before fulfilled shows", write, what);
  }
}

export function checkSlot({ nodes }: LogCheck, id: string, write: AppliedWrite): void {
  const { hostname, slot } = nodes.get(id)!.data;
  if (slot === null || slot === undefined) return;
  for (const [other, { data }] of nodes) {
    if (other === id || data.hostname !== hostname || data.slot !== slot) continue;
    if (data.state === "deleted" || data.state === "deleting") continue;
    const what = `${hostname}#${slot}: ${other} (${data.state}) and ${id}`;
    throw new Broken("a slot has one record", write, what);
  }
}
