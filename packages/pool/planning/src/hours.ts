import { costBetween, type NodeRecord, priceOf } from "@nodeyard/model";
import type { ViewEvent } from "@nodeyard/view";

/** How long nodes of a provider and label were there, and what they cost. */
export interface HoursFigures {
  readonly provider: string;
  /** Null: of all labels together. */
  readonly label: string | null;
  /** Node hours that nobody asked for: from ready to given to a request or deleted. */
  readonly idle: number;
  /** Of nodes without a known price, nothing. */
  readonly cost: number;
}

/** Of one node. */
interface Life {
  readonly record: NodeRecord;
  readonly began: number;
  readonly idleMs: number;
  /** When `record` became true. */
  readonly since: number;
}

const HOUR_MS = 3_600_000;

/** Sums idle time and cost, by provider and label. A node costs from the begin of its launch to the end of its deletion. */
export class Hours {
  readonly #now: () => number;
  readonly #lives = new Map<string, Life>();
  readonly #sums = new Map<string, HoursFigures>();

  /** `now`: milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  onNode({ id, after }: Extract<ViewEvent, { type: "node" }>): void {
    const now = this.#now();
    const life =
      this.#lives.get(id) ?? (after && { record: after.record, began: now, idleMs: 0, since: now });
    if (life === undefined) return;
    const known = { ...life, idleMs: life.idleMs + (isIdle(life.record) ? now - life.since : 0), since: now };
    if (after !== undefined) this.#lives.set(id, { ...known, record: after.record });
    else {
      this.#lives.delete(id);
      this.#add(known);
    }
  }

  /** All so far; nodes that are there count until now. */
  list(): readonly HoursFigures[] {
    for (const [id, life] of this.#lives) {
      this.#lives.delete(id);
      const now = this.#now();
      this.#add({ ...life, idleMs: life.idleMs + (isIdle(life.record) ? now - life.since : 0), since: now });
    }
    return [...this.#sums.values()];
  }

  #add({ record, began, idleMs, since }: Life): void {
    const [provider, own] = [record.provider ?? "", record.type.join(",")];
    const cost = costBetween(priceOf(record) ?? { perHour: 0 }, began, since);
    for (const label of [own, null]) {
      const key = JSON.stringify([provider, label]);
      const before = this.#sums.get(key) ?? { provider, label, idle: 0, cost: 0 };
      this.#sums.set(key, { ...before, idle: before.idle + idleMs / HOUR_MS, cost: before.cost + cost });
    }
  }
}

function isIdle({ state, allocatedTo }: NodeRecord): boolean {
  return state === "ready" && allocatedTo === null;
}
