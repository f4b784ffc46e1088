import { MIN_READY } from "@nodeyard/model";
import type { JournalEventName, PastEvent } from "@nodeyard/telemetry";
import { poolKey, type ViewEvent } from "@nodeyard/view";

/** Kept of each pool and label: what a cloud did last week says little of today. */
const LAUNCHES = 32;
/** Kept of each label: users differ more than launches do. */
const USES = 256;
/** Kept of each label: when its nodes were asked for. */
const ASKS = 20_000;
/** Older ones are ignored, milliseconds: a week, and the hour that came then. */
const ASKED_MS = 8 * 86_400_000;
/** Pools with labels that are remembered, at most. */
const REMEMBERED = 10_000;
/** Older durations are ignored, milliseconds. */
const DAY_MS = 86_400_000;

/** What `recall` reads for durations. */
export const TIMING_EVENTS: readonly JournalEventName[] = ["node.ready", "node.returned"];
/** What `recall` reads for what was asked for. */
export const DEMAND_EVENTS: readonly JournalEventName[] = ["request.accepted"];

/**
 * How long launches took lately, and how long users kept nodes. In memory; after a restart read back from the journal. A row is a ring
 * of the newest values; forecasts draw from it.
 */
export class Timings {
  /** Milliseconds, by pool and label. */
  readonly #launches = new Map<string, number[]>();
  /** Milliseconds, by label. */
  readonly #uses = new Map<string, number[]>();
  /** Tree time, milliseconds, by label. */
  readonly #asks = new Map<string, number[]>();

  /** `pool` is a pool's key. */
  launched(pool: string, label: string, ms: number): void {
    note(this.#launches, `${pool} ${label}`, ms, LAUNCHES);
  }

  used(label: string, ms: number): void {
    note(this.#uses, label, ms, USES);
  }

  /** Notes each new request of a client, and how long a node was in use when its use ends, for nodes of all launchers. */
  onEvent(event: ViewEvent): void {
    if (event.type === "request" && event.before === undefined && event.after !== undefined) {
      const { requestor, nodeTypes, createdTime } = event.after.record;
      if (requestor === MIN_READY || createdTime === null) return;
      for (const label of nodeTypes) note(this.#asks, label, createdTime * 1_000, ASKS);
    }
    if (event.type !== "node" || event.before?.record.state !== "in-use") return;
    const { type, stateTime } = event.before.record;
    const until = event.after?.record.state === "in-use" ? null : (event.after?.record.stateTime ?? null);
    // Without times in the record nothing is known; a record that changes within its use, such as its comment, ends nothing.
    if (until === null || stateTime === null || type[0] === undefined) return;
    this.used(type[0], Math.max(0, until - stateTime) * 1_000);
  }

  /** Takes events of earlier processes, oldest first, as older than all of this process. `now`: the journal's clock, milliseconds. */
  recall(events: readonly PastEvent[], now: number): void {
    const before = new Timings();
    for (const { at, event, facts } of events) {
      if (event === "request.accepted") before.#recallAsked(at, facts, now);
      const { provider, pool, label, ms } = facts;
      if (now - at > DAY_MS || typeof ms !== "number" || ms < 0 || typeof label !== "string") continue;
      if (event === "node.returned") before.used(label.split(",")[0]!, ms);
      else if (event === "node.ready" && typeof provider === "string" && typeof pool === "string")
        before.launched(poolKey(provider, pool), label, ms);
    }
    putBefore(this.#launches, before.#launches, LAUNCHES);
    putBefore(this.#uses, before.#uses, USES);
    putBefore(this.#asks, before.#asks, ASKS);
  }

  #recallAsked(at: number, { asked }: PastEvent["facts"], now: number): void {
    const { labels, created } = (asked ?? {}) as { readonly labels?: unknown; readonly created?: unknown };
    if (now - at > ASKED_MS || !Array.isArray(labels)) return;
    for (const label of labels)
      if (typeof label === "string")
        note(this.#asks, label, typeof created === "number" ? created * 1_000 : at, ASKS);
  }

  /** Of a label in a pool. */
  launchesOf(pool: string, label: string): readonly number[] {
    return this.#launches.get(`${pool} ${label}`) ?? [];
  }

  /** When nodes of a label were asked for: a copy, ascending. */
  asksOf(label: string): readonly number[] {
    return [...(this.#asks.get(label) ?? [])].sort((a, b) => a - b);
  }

  usesOf(label: string): readonly number[] {
    return this.#uses.get(label) ?? [];
  }
}

/** Appends a value and drops the oldest. Beyond so many keys everything is forgotten, rather than kept for ever. */
function note(known: Map<string, number[]>, key: string, value: number, most: number): void {
  if (known.size >= REMEMBERED && !known.has(key)) known.clear();
  const values = known.get(key) ?? [];
  known.set(key, values);
  values.push(value);
  if (values.length > most) values.shift();
}

/** Puts older values before those that are known, and keeps the newest `most`. */
function putBefore(
  known: Map<string, number[]>,
  before: ReadonlyMap<string, readonly number[]>,
  most: number,
): void {
  for (const [key, values] of before) known.set(key, [...values, ...(known.get(key) ?? [])].slice(-most));
}
