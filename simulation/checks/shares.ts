import type { ShareWeights } from "@nodeyard/scheduler";
import { Broken } from "./broken.ts";
import type { Limits } from "./limits.ts";
import type { Change, Replay } from "./replay.ts";
import { isLauncher, type Rule, stateOf } from "./rule.ts";

/**
 * How often somebody with more may be served while a request of the same priority waits whose tenant has less by weight. Some may: what is
 * kept for a larger request stays kept, and launchers see paths at different moments.
 */
const MOST = 8;

/** Its machines cannot be made, or its image is not there: such a request holds up nobody. */
const APART: ReadonlySet<unknown> = new Set(["doomed", "imaged", "nowhere"]);

interface Waiting {
  readonly labels: readonly string[];
  readonly declinedBy: readonly string[];
  readonly tenant: string;
  readonly rank: string;
  /** Of the requests that were accepted and served in between. */
  readonly accepted: Set<string>;
  passed: number;
}

/** Shares: nobody waits again and again below their share, while somebody above theirs gets nodes of the same labels. */
export class SharesHold implements Rule {
  readonly #waiting = new Map<string, Waiting>();
  readonly #weights: ShareWeights;
  readonly #limits: ReadonlyMap<string, unknown>;

  constructor(weights: ShareWeights, limits: Limits["tenants"] = new Map()) {
    this.#weights = weights;
    this.#limits = limits;
  }

  onRequest({ id, before, after, write }: Change, replay: Replay): void {
    if (stateOf(after) === "requested") return this.#note(id, after!.data);
    const mine = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (stateOf(after) === "fulfilled") return this.#served(id, write);
    const accepted = stateOf(before) === "requested" && stateOf(after) === "pending";
    if (mine === undefined || !accepted || !isLauncher(write.client)) return;
    const load = (tenant: string) =>
      this.#nodesOf(tenant, id, replay) / (this.#weights.tenants.get(tenant) ?? 1);
    const own = load(mine.tenant);
    for (const theirs of this.#waiting.values()) {
      if (theirs.tenant === mine.tenant || theirs.rank !== mine.rank) continue;
      if (theirs.declinedBy.length > 0 || this.#limits.has(theirs.tenant)) continue;
      if (theirs.labels.length > mine.labels.length) continue;
      if (!theirs.labels.every((label) => mine.labels.includes(label))) continue;
      if (load(theirs.tenant) < own) theirs.accepted.add(id);
    }
  }

  #served(id: string, write: Change["write"]): void {
    for (const [other, waiting] of this.#waiting) {
      if (!waiting.accepted.delete(id) || ++waiting.passed <= MOST) continue;
      throw new Broken(
        "nobody waits below their share while who has more is served",
        write,
        `${other} of ${waiting.tenant || "no tenant"} waits; ${id} is the ${waiting.passed}th request of another tenant that had more`,
      );
    }
  }

  /** As launchers count: by tenant, of all providers; those of the request itself come on top. */
  #nodesOf(tenant: string, request: string, { nodes }: Replay): number {
    return [...nodes.values()].filter(
      ({ data }) =>
        data.allocated_to !== null && data.allocated_to !== request && (data.tenant_name ?? "") === tenant,
    ).length;
  }

  #note(id: string, data: Readonly<Record<string, unknown>>): void {
    const labels = data.node_types as string[];
    if (id.startsWith("900-") || labels.some((label) => APART.has(label))) return;
    for (const { accepted } of this.#waiting.values()) accepted.delete(id);
    const { passed = 0, accepted = new Set<string>() } = this.#waiting.get(id) ?? {};
    const tenant = (data.tenant_name ?? "") as string;
    const declinedBy = (data.declined_by ?? []) as string[];
    const rank = `${id.slice(0, 3)} ${data.relative_priority ?? 0}`;
    this.#waiting.set(id, { labels, declinedBy, tenant, rank, accepted, passed });
  }
}
