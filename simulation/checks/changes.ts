import { isDeepStrictEqual } from "node:util";
import { mayGo, type NodeState, type RequestState } from "@nodeyard/model";
import { Broken } from "./broken.ts";
import { DURABLE } from "./locks.ts";
import type { Change, Replay } from "./replay.ts";
import { isLauncher, type Rule, stateOf } from "./rule.ts";

/** Rule 1: a record is written only by the holder of its lock, and its state follows the model's table. */
export class Changes implements Rule {
  onNode(change: Change, replay: Replay): void {
    const { id, before, after, op, write, held } = change;
    if (before === undefined || after === undefined) return;
    const [from, to] = [stateOf(before), stateOf(after)];
    if (from !== to && !mayGo("node", from as NodeState, to as NodeState))
      throw new Broken("nodes change state as the table says", write, `${id}: ${from} -> ${to}`);
    const holder = replay.nodeLocks.holder(id);
    // Any launcher may act for a lease or a metastatic provider, but not over another process's write.
    const forDurable = holder === DURABLE && op.op === "set" && op.version !== undefined;
    if (!held && holder !== write.client && !forDurable && !isRetired(change, replay))
      throw new Broken("a node is written only under its lock", write, `${id}: ${from} -> ${to}`);
  }

  onRequest({ id, before, after, write, held }: Change, replay: Replay): void {
    if (before === undefined || after === undefined) return;
    const [from, to] = [stateOf(before), stateOf(after)];
    if (!held && replay.requestLocks.holder(id) !== write.client)
      throw new Broken("a request is written only under its lock", write, `${id}: ${from} -> ${to}`);
    // kazoo repeats a write whose answer was lost: the record has that content already.
    const isRepeated = !isLauncher(write.client) && isDeepStrictEqual(before.data, after.data);
    if ((from === "fulfilled" || from === "failed") && !isRepeated)
      throw new Broken("an ended request is not written again", write, id);
    if (from !== to && !mayGo("request", from as RequestState, to as RequestState))
      throw new Broken("requests change state as the table says", write, `${id}: ${from} -> ${to}`);
  }
}

/** A fulfilled min-ready request frees its nodes when it is deleted, in one commit that checks their versions. */
function isRetired({ before, after, write }: Change, { requests }: Replay): boolean {
  const request = String(before!.data.allocated_to);
  return (
    request.startsWith("900-") &&
    after!.data.allocated_to === null &&
    stateOf(before) === "ready" &&
    stateOf(after) === "ready" &&
    stateOf(requests.get(request)) === "fulfilled" &&
    write.ops.some((op) => op.op === "delete" && op.path.endsWith(`/${request}`))
  );
}
