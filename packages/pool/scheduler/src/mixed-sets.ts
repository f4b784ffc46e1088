import type {
  Lease,
  LeasePart,
  MixedSet,
  NodeRecord,
  Places,
  PoolOffer,
  RequestRecord,
} from "@nodeyard/model";
import { type Pools, pairFor } from "./pairing.ts";

/** A request that no launcher accepts for so long waits, milliseconds: until then it may be accepted any moment. */
const ACCEPT_MS = 5_000;
/** A request that is accepted and not fulfilled for so long may wait as well, for a backing node or in a launcher of Nodepool. */
const FULFIL_MS = 600_000;

/** A lease that gathers its nodes, with the request of the part that it asks for; undefined: none is written, or it is not seen yet. */
export interface GatheringSet {
  readonly lease: Lease;
  readonly set: MixedSet;
  readonly request: RequestRecord | undefined;
}

/** What the plan of a set depends on beside the sets. */
export interface SetFacts extends Pools {
  /** Undefined: it is gone, or not seen yet. */
  readonly node: (id: string) => NodeRecord | undefined;
  /** Whether a limit counts all nodes of the tenant. */
  readonly isLimited: (tenant: string) => boolean;
  /** Tree time, milliseconds. */
  readonly now: number;
}

/** What becomes of a set now. */
export type SetPlan =
  | { readonly do: "ask"; readonly label: string; readonly places: Places | undefined }
  /** `gone`: the node for whose absence it fails. Nodes and leases are seen at different moments, so the tree has the last word. */
  | { readonly do: "fail"; readonly why: string; readonly gone?: string }
  /** Gives back what it holds. `to`: the older lease that waits for something of it. */
  | { readonly do: "yield"; readonly to: string }
  /** `behind`: the older lease for which it does not begin. `ms`: when time alone may change the plan; Infinity: only an event does. */
  | { readonly do: "wait"; readonly behind?: string | undefined; readonly ms: number };

/**
 * The next step of a set that has no request to carry out. Pure. Two rules keep sets from blocking each other (docs/design/mixed-sets.md): all of
 * them ask for their parts in one order, what there is least of first; and of sets that hold something and wait, a younger one gives back
 * what an older one could use, and does not begin again before that has it.
 */
export function planSet(self: GatheringSet, others: Iterable<GatheringSet>, facts: SetFacts): SetPlan {
  const { set } = self;
  const gone = set.parts.flatMap(({ nodes }) => nodes).find((id) => facts.node(id) === undefined);
  if (gone !== undefined) return { do: "fail", why: `node ${gone}, which it held, is gone`, gone };
  const isAsked = set.parts.some(({ asked }) => asked !== null);
  const holds = holdsAny(set);
  const left = holds ? waitsIn(self, facts.now) : Number.POSITIVE_INFINITY;
  if (isAsked && left > 0) return { do: "wait", ms: left };
  // A set that holds something may ask for its next part at any time: only when it has to wait for that, it is in the way.
  if (isAsked || !holds) {
    const older = soonest(self, others, facts);
    const to = older !== undefined && older.left <= 0 ? older.id : undefined;
    if (isAsked)
      return to === undefined
        ? { do: "wait", ms: older?.left ?? Number.POSITIVE_INFINITY }
        : { do: "yield", to };
    if (to !== undefined) return { do: "wait", behind: to, ms: Number.POSITIVE_INFINITY };
  }
  const next = nextPart(set, facts.offers);
  if (next === undefined) return { do: "wait", ms: Number.POSITIVE_INFINITY };
  const paired = pairFor(set, next.label, facts, facts.node);
  return "why" in paired
    ? { do: "fail", why: paired.why }
    : { do: "ask", label: next.label, places: paired.places };
}

/** Of the older sets that could use what this one holds or would hold, the one that waits already or soonest. */
function soonest(
  self: GatheringSet,
  others: Iterable<GatheringSet>,
  facts: SetFacts,
): { readonly id: string; readonly left: number } | undefined {
  let found: { readonly id: string; readonly left: number } | undefined;
  for (const other of others) {
    const left = waitsIn(other, facts.now);
    if (left === Number.POSITIVE_INFINITY || left >= (found?.left ?? left + 1)) continue;
    if (isBefore(other.lease, self.lease) && contend(other, self, facts))
      found = { id: other.lease.id, left };
  }
  return found;
}

/** Whether a set has nodes already: only those that have can block others. */
export function holdsAny({ parts }: Pick<MixedSet, "parts">): boolean {
  return parts.some(({ nodes }) => nodes.length > 0);
}

/**
 * The part that a set asks for, or would ask for next. First labels that no pool is known to offer, which may be had nowhere; then hosts, of which
 * there are no more; then slots; then machines, which can be launched; each of them by label.
 */
export function nextPart(set: MixedSet, offers: readonly PoolOffer[]): LeasePart | undefined {
  const rank = ({ label }: LeasePart) => {
    const kinds = offers.filter(({ labels }) => labels.includes(label)).map(({ kind }) => kind);
    return Math.max(-1, ...kinds.map((kind) => ["hosts", "slots", "machines"].indexOf(kind)));
  };
  const asked = set.parts.find((part) => part.asked !== null);
  return (
    asked ??
    set.parts
      .filter(({ nodes }) => nodes.length === 0)
      .sort((a, b) => rank(a) - rank(b) || (a.label < b.label ? -1 : 1))[0]
  );
}

/** Whether a set comes first: by priority, then by age. */
export function isBefore(a: Lease, b: Lease): boolean {
  const [before, after] = [a.set?.priority ?? "", b.set?.priority ?? ""];
  if (before !== after) return before < after;
  if (a.created !== b.created) return a.created < b.created;
  return a.id < b.id;
}

/** After how many milliseconds a set that holds something counts as waiting for the rest; Infinity: it does not. */
function waitsIn({ set, request }: GatheringSet, now: number): number {
  const asked = set.parts.find((part) => part.asked !== null)?.asked;
  if (asked == null || request === undefined || !holdsAny(set)) return Number.POSITIVE_INFINITY;
  if (request.state === "requested") return asked.at + ACCEPT_MS - now;
  return request.state === "pending" ? asked.at + FULFIL_MS - now : Number.POSITIVE_INFINITY;
}

/** Whether what the younger set holds, or is about to hold, could be what the older one waits for. */
function contend(older: GatheringSet, younger: GatheringSet, facts: SetFacts): boolean {
  const { tenant } = older.lease;
  if (tenant !== null && tenant === younger.lease.tenant && facts.isLimited(tenant)) return true;
  const waiting = older.set.parts.filter(({ asked }) => asked !== null);
  const held = younger.set.parts.filter(({ nodes }) => nodes.length > 0);
  const wanted = reach(waiting, facts);
  for (const provider of reach(held.length > 0 ? held : younger.set.parts, facts))
    if (wanted.has(provider)) return true;
  return false;
}

/** The providers whose machines nodes of these labels take, those of backing nodes included. */
function reach(parts: readonly LeasePart[], { offers, registered }: SetFacts): ReadonlySet<string> {
  const providers = new Set<string>();
  const labels = new Set(parts.map(({ label }) => label));
  // A set that grows while it is read.
  for (const label of labels) {
    for (const pool of registered) if (pool.labels.includes(label)) providers.add(pool.provider);
    for (const pool of offers) {
      if (!pool.labels.includes(label)) continue;
      providers.add(pool.provider);
      for (const backing of pool.backing) labels.add(backing);
    }
  }
  return providers;
}
