import { clientOf } from "@nodeyard/model";
import type { AppliedWrite } from "@nodeyard/tree";
import { Broken } from "./broken.ts";
import type { Change, Replay } from "./replay.ts";
import { isLauncher, type Rule, stateOf } from "./rule.ts";

/**
 * How many later requests may be served while an earlier one waits, by how many nodes they want. A few may be: launchers see paths at
 * different moments, an operator retires a backing node, and one free node is of no use to a request for more. The most that was seen is 2
 * and 7; without a reservation for the first request of a queue a burst (`burst.ts`) lets 39 and more overtake.
 */
const MOST = { same: 6, fewer: 20 };

/** Its machines can never be made: who wants one waits until it may be tried again, and holds up nobody meanwhile. */
const DOOMED = "doomed";

/** It boots a diskimage: who waits for its upload holds up nobody who does not want it. */
const IMAGED = "imaged";

interface Waiting {
  readonly labels: readonly string[];
  /** Pools by id: what one of them serves later overtakes nobody whom it has declined. */
  readonly declinedBy: readonly string[];
  readonly tenant: unknown;
  /** In the order in which requests are to be served. */
  readonly key: string;
  /** Later requests that were accepted and served in between: one that is reset has taken nothing. */
  readonly passed: { same: number; fewer: number };
  readonly accepted: Map<string, "same" | "fewer">;
}

/** Whether a client, if any, does nothing more from this write on until its session ends: known where the log is judged as a whole. */
export type IsDead = (client: string | undefined, now: AppliedWrite) => boolean;

/** Rule 4, of the order: a later request with the same priority or a lower one does not overtake again and again. */
export class Order implements Rule {
  readonly #waiting = new Map<string, Waiting>();
  readonly #shared: boolean;
  readonly #isDead: IsDead;

  /** `shared`: the order of different clients depends on their shares (`shares.ts`). */
  constructor(shared = false, isDead: IsDead = () => false) {
    this.#shared = shared;
    this.#isDead = isDead;
  }

  onRequest({ id, before, after, write }: Change, { requestLocks }: Replay): void {
    if (stateOf(after) === "requested") return this.#note(id, after!.data);
    const mine = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (stateOf(after) === "fulfilled") return this.#served(id, write);
    const accepted = stateOf(before) === "requested" && stateOf(after) === "pending";
    if (mine === undefined || !accepted || !isLauncher(write.client)) return;
    for (const [other, theirs] of this.#waiting) {
      // Nobody can serve it before the session of who was killed with its lock ends.
      if (this.#isDead(requestLocks.holder(other), write)) continue;
      const more = theirs.labels.length - mine.labels.length;
      if (theirs.key >= mine.key || theirs.tenant !== mine.tenant || more < 0) continue;
      if (theirs.declinedBy.some((pool) => pool.startsWith(`${write.client}.`))) continue;
      if (theirs.labels.includes(IMAGED) && !mine.labels.includes(IMAGED)) continue;
      if (mine.labels.every((label) => theirs.labels.includes(label)))
        theirs.accepted.set(id, more > 0 ? "fewer" : "same");
    }
  }

  #served(id: string, write: Change["write"]): void {
    for (const [other, { labels, passed, accepted }] of this.#waiting) {
      const kind = accepted.get(id);
      accepted.delete(id);
      if (kind !== undefined && ++passed[kind] > MOST[kind])
        throw new Broken(
          "no request is overtaken again and again",
          write,
          `${other} waits for ${labels}; ${id} is the ${passed[kind]}th later request that is served first (${kind})`,
        );
    }
  }

  #note(id: string, data: Readonly<Record<string, unknown>>): void {
    // Min-ready requests are served when no other request waits.
    if (id.startsWith("900-")) return;
    const labels = data.node_types as string[];
    if (labels.includes(DOOMED)) return;
    const declinedBy = (data.declined_by ?? []) as string[];
    for (const { accepted } of this.#waiting.values()) accepted.delete(id);
    const { passed = { same: 0, fewer: 0 }, accepted = new Map() } = this.#waiting.get(id) ?? {};
    const tenant = data.tenant_name ?? null;
    const client = clientOf((data.requestor ?? null) as string | null, data.requestor_data);
    const sharer = JSON.stringify([tenant, client]);
    const relative = String(data.relative_priority ?? 0).padStart(6, "0");
    const key = `${id.slice(0, 3)} ${relative} ${id.slice(4)}`;
    this.#waiting.set(id, {
      labels,
      declinedBy,
      tenant: this.#shared ? sharer : tenant,
      key,
      passed,
      accepted,
    });
  }
}
