import type { AppliedWrite } from "@nodeyard/tree";
import { Broken } from "./broken.ts";
import type { Change, Replay } from "./replay.ts";
import { type Rule, stateOf } from "./rule.ts";

/**
 * A contender of a process that only looks whether a lock is free is gone after this long, milliseconds: at worst after a session's end.
 */
const LOOK_MS = 20_000;

/**
 * Rules 1 and 2: a nodeset is delivered whole, from one pool (and one zone if the pool says so), in the requested order, unlocked, and to
 * one request only.
 */
export class Delivery implements Rule {
  /** Nodes of fulfilled requests, with the request. */
  readonly #given = new Map<string, string>();
  readonly #zoned: string | undefined;

  /** `zoned`: the pool whose nodesets have one zone each. */
  constructor(zoned: string | undefined) {
    this.#zoned = zoned;
  }

  onNode({ id, before, after, write }: Change, replay: Replay): void {
    if (after === undefined) this.#given.delete(id);
    else if (before === undefined) checkSlot(replay, id, write);
  }

  onRequest({ id, before, after, write }: Change, replay: Replay): void {
    if (after === undefined || stateOf(after) !== "fulfilled" || stateOf(before) === "fulfilled") return;
    const wanted = after.data.node_types as string[];
    const nodes = after.data.nodes as string[];
    if (nodes.length !== wanted.length)
      throw new Broken("a nodeset is delivered whole", write, `${id}: ${nodes.length} of ${wanted.length}`);
    const pools = new Set<string>();
    const zones = new Set<unknown>();
    for (const [index, nodeId] of nodes.entries()) {
      const node = replay.nodes.get(nodeId)?.data;
      if (node?.state !== "ready" || node.allocated_to !== id) {
        const what = `${id}: ${nodeId} is ${JSON.stringify(node)}`;
        throw new Broken("a request gets ready nodes of its own", write, what);
      }
      if (!(node.type as string[]).includes(wanted[index]!))
        throw new Broken("nodes stand in the order of node_types", write, `${id}: ${nodeId}`);
      checkUnlocked(replay, id, nodeId, write);
      const other = this.#given.get(nodeId);
      if (other !== undefined && replay.requests.has(other))
        throw new Broken("a node is leased to one request at most", write, `${nodeId}: ${other} and ${id}`);
      this.#given.set(nodeId, id);
      pools.add(`${node.provider}/${node.pool}`);
      zones.add(node.az);
    }
    if (pools.size > 1) throw new Broken("a nodeset comes from one pool", write, [...pools].join(", "));
    if (pools.has(this.#zoned ?? "") && zones.size > 1)
      throw new Broken("a nodeset has one zone", write, `${id}: ${[...zones].join(", ")}`);
  }
}

/**
 * Our own contender must be gone. Another launcher may be looking whether the lock is free, as the contract allows (create, list, delete):
 * its contender exists for a round trip, or until its session expires if it died in between, and never for longer.
 */
function checkUnlocked({ nodeLocks, now }: Replay, id: string, node: string, write: AppliedWrite): void {
  for (const { name, client, since } of nodeLocks.line(node)) {
    if (client !== write.client && now - since <= LOOK_MS) continue;
    const what = `${id}: ${node} has ${name} of ${client}, ${Math.round(now - since)} ms old`;
    throw new Broken("nodes are unlocked before fulfilled is visible", write, what);
  }
}

function checkSlot({ nodes }: Replay, id: string, write: AppliedWrite): void {
  const { hostname, slot } = nodes.get(id)!.data;
  if (slot === null || slot === undefined) return;
  for (const [other, { data }] of nodes) {
    if (other === id || data.hostname !== hostname || data.slot !== slot) continue;
    if (data.state === "deleted" || data.state === "deleting") continue;
    const what = `${hostname}#${slot}: ${other} (${data.state}) and ${id}`;
    throw new Broken("a slot has one record", write, what);
  }
}
