import { Broken } from "./broken.ts";
import type { Effect } from "./effect.ts";
import type { Replay, Znode } from "./replay.ts";
import { type Rule, stateOf } from "./rule.ts";

/** A launch that was given up removes its machine under the record that it still has; a deletion first sets the state. */
const MAY_SEND_DELETE: ReadonlySet<string | null> = new Set(["building", "deleting", "deleted"]);
/** A call is carried out some time after it was sent; its node may be in deletion by then, without a user. */
const MAY_LOSE: ReadonlySet<string | null> = new Set([
  null,
  "init",
  "building",
  "aborted",
  "failed",
  "deleting",
  "deleted",
]);

/**
 * Rules 1 and 5, for clouds: a machine is created only for an existing record (intent before effect) and deleted only when its node ends,
 * both under the node's lock and by a process that may trust its session. Any process may delete a machine without a record.
 */
export class Machines implements Rule {
  onEffect(effect: Effect, replay: Replay): void {
    if (!effect.ours) throw broken("nothing without our id is deleted", effect, "it is not ours");
    const { kind, moment, node } = effect;
    if (node === undefined) throw broken("intent stands before the effect", effect, "it names no node");
    const state = stateOf(replay.nodes.get(node));
    if (moment === "done") {
      if (kind === "check") return;
      if (!MAY_LOSE.has(state))
        throw broken(
          kind === "create" ? "a machine is made once" : "a machine stays while its node does",
          effect,
          `the node is ${state}`,
        );
      return;
    }
    if (!effect.trusted)
      throw broken("no effect without trust in the session", effect, "its session may be over");
    if (kind === "check" && state !== "building")
      throw broken("a node is checked while nobody has it", effect, `the node is ${state}`);
    if (kind === "create" && state !== "building")
      throw broken("intent stands before the effect", effect, `the node is ${state ?? "without a record"}`);
    if (kind === "create" && effect.type !== boughtAs(replay.nodes.get(node)))
      throw broken("what is bought stands in the record", effect, `it buys ${effect.type}`);
    if (state === null) return;
    if (kind === "delete" && !MAY_SEND_DELETE.has(state))
      throw broken("a machine stays while its node does", effect, `the node is ${state}`);
    if (!holds(effect, node, replay)) {
      const holder = replay.nodeLocks.holder(node) ?? "nobody";
      throw broken(
        "an effect is under the node's lock",
        effect,
        `the node is ${state}, and ${holder} holds it`,
      );
    }
  }
}

/** What the record of a node says that it is bought as. */
function boughtAs(node: Znode | undefined): unknown {
  const own = node?.data.driver_data as
    | { readonly nodeyard?: { readonly offering?: unknown } }
    | null
    | undefined;
  return own?.nodeyard?.offering;
}

/** A process that cannot know yet that its session has ended trusts the locks that it had then (rule 1). */
function holds({ client, session }: Effect, node: string, { nodeLocks, heldToTheEnd }: Replay): boolean {
  return nodeLocks.holder(node) === client || heldToTheEnd.get(session)?.has(node) === true;
}

function broken(
  rule: string,
  { kind, moment, provider, machine, node, client }: Effect,
  what: string,
): Broken {
  const of = `${provider}: ${kind} (${moment}) of machine ${machine ?? "-"} of node ${node ?? "-"}`;
  return new Broken(rule, undefined, `${of} by ${client}: ${what}`);
}
