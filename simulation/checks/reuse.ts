import { isDeepStrictEqual } from "node:util";
import type { AppliedWrite } from "@nodeyard/tree";
import { Broken } from "./broken.ts";
import type { Effect } from "./effect.ts";
import type { Change, Znode } from "./replay.ts";
import { isLauncher, type Rule, stateOf } from "./rule.ts";

/** How nodes of a label are used again. */
export interface Reused {
  readonly times: number;
  /** False: only the tenant and client that had a node get it again. */
  readonly forAll: boolean;
}

interface NodeMemory {
  /** How often it was given back and began to be checked. */
  uses: number;
  /** It passed a check after its last use. */
  passed: boolean;
  /** Why it must not be used again, as its last user left it. */
  spoiled: string | undefined;
  /** Tenant and requestor that had it last. */
  user: readonly unknown[];
}

const LEASE = /^\/nodeyard\/leases\/([^/]+)$/;
const OF_LEASE = /^Nodeyard:lease:(.+)$/;
/** What must not be left of a user. */
const OF_USER = [
  "allocated_to",
  "tenant_name",
  "requestor",
  "user_data",
  "comment",
  "hold_job",
  "hold_expiration",
];

/**
 * Promise to clients: a node that was used before is given to somebody only after it has passed a check since, no more often than its label
 * says, never after it was given back as dirty, held or left alone, and, unless its label is for all, only to the tenant and client
 * that had it.
 */
export class ReusedNodes implements Rule {
  readonly #labels: ReadonlyMap<string, Reused>;
  readonly #nodes = new Map<string, NodeMemory>();
  /** Leases that their clients released as good, and others that are over. */
  readonly #released = new Map<string, boolean>();
  /** Leases whose clients may have used their nodes. A set that cannot be had gives back what nobody has used. */
  readonly #granted = new Set<string>();

  /** By label; nodes of others are used once. */
  constructor(labels: ReadonlyMap<string, Reused> = new Map()) {
    this.#labels = labels;
  }

  onEffect({ kind, moment, node = "" }: Effect): void {
    const known = this.#nodes.get(node);
    if (kind === "check" && moment === "done" && known !== undefined) known.passed = true;
  }

  onWrite({ ops, client, sessionEnd }: AppliedWrite): void {
    if (sessionEnd === true) return;
    for (const op of ops) {
      const lease = LEASE.exec(op.path)?.[1];
      if (lease === undefined || op.op !== "set" || this.#released.has(lease)) continue;
      const { state, verdict = null } = JSON.parse(Buffer.from(op.data).toString()) as Record<
        string,
        unknown
      >;
      if (state === "granted") this.#granted.add(lease);
      if (state !== "released") continue;
      this.#released.set(lease, !isLauncher(client) && (verdict === null || verdict === "ok"));
    }
  }

  onNode({ id, before, after, write }: Change): void {
    if (after === undefined) return void this.#nodes.delete(id);
    if (before === undefined)
      return void this.#nodes.set(id, { uses: 0, passed: true, spoiled: undefined, user: [] });
    const known = this.#nodes.get(id)!;
    const [from, to] = [stateOf(before), stateOf(after)];
    const broken = (rule: string, what: string) =>
      new Broken(rule, write, `${id}: ${from} -> ${to}: ${what}`);
    if (!isLauncher(write.client) || to === "used") this.#noteUse(known, from, to, before, after);
    if (from === "used" && to === "building") {
      known.uses++;
      known.passed = false;
      const most = this.#labels.get((after.data.type as string[])[0]!)?.times ?? 0;
      if (known.uses > most)
        throw broken("a node is used no more often than its label says", `${known.uses}`);
      if (known.spoiled !== undefined) throw broken("a node is used again only if it is good", known.spoiled);
    }
    if (known.uses === 0 || to !== "ready" || !isLauncher(write.client)) return;
    if (!known.passed) throw broken("a node is used again only after it has passed a check", "it has not");
    const { allocated_to: given = null } = after.data;
    if (from === "building" && given === null) {
      const left = OF_USER.filter((field) => (after.data[field] ?? null) !== null);
      if (left.length > 0) throw broken("nothing of its last user is left", left.join(", "));
    }
    const { forAll = false } = this.#labels.get((after.data.type as string[])[0]!) ?? {};
    if (given !== null && !forAll && !isDeepStrictEqual(userOf(after), known.user))
      throw broken("a node is given again only to who had it", `${userOf(after)}, not ${known.user}`);
  }

  #noteUse(known: NodeMemory, from: string | null, to: string | null, before: Znode, after: Znode): void {
    if (to === "hold") known.spoiled = "it was on hold";
    if (to === "in-use" || to === "used") known.passed = false;
    if (to !== "used" || from === "used") return;
    known.user = userOf(before);
    const lease = OF_LEASE.exec(String(after.data.requestor))?.[1];
    if (lease !== undefined && this.#granted.has(lease) && this.#released.get(lease) !== true)
      known.spoiled = "its lease did not end well";
  }
}

function userOf({ data }: Znode): readonly unknown[] {
  return [data.tenant_name ?? null, data.requestor ?? null];
}
