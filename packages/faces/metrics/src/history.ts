import type { Clock, Timer } from "@nodeyard/runtime";
import type { Journal, PastEvent } from "@nodeyard/telemetry";
import type { Counts, Population } from "./population.ts";

/** Between two points, milliseconds. */
export const HISTORY_STEP_MS = 300_000;
const DAY_MS = 86_400_000;
/** Labels, and providers, of one point: those with most nodes and requests. */
const MOST = 100;

/** The numbers of one moment. */
export interface HistoryPoint extends Counts {
  /** Wall clock, milliseconds; a multiple of HISTORY_STEP_MS. */
  readonly at: number;
}

/**
 * Counts of the last day, one point for each five minutes. Events update the sums; a point copies them. The journal stores each point,
 * so that a restarted process has earlier points as far back as the journal goes. While no process runs, points are missing.
 */
export class CountHistory {
  /** By `at`, in no particular order after a recall. */
  readonly #points = new Map<number, HistoryPoint>();
  readonly #clock: Clock;
  readonly #journal: Journal;
  readonly #population: Pick<Population, "counts">;
  /** Whether the view is complete, so that the sums cover the whole tree. */
  readonly #isComplete: () => boolean;
  #timer: Timer | undefined;

  /** Notes the first point at the next full step of five minutes. `close` ends it. */
  constructor(
    population: Pick<Population, "counts">,
    isComplete: () => boolean,
    { clock, journal }: { readonly clock: Clock; readonly journal: Journal },
  ) {
    this.#population = population;
    this.#isComplete = isComplete;
    this.#clock = clock;
    this.#journal = journal;
    this.#wait();
  }

  /** Oldest first. */
  points(): readonly HistoryPoint[] {
    const since = this.#clock.now() - DAY_MS;
    return [...this.#points.values()].filter(({ at }) => at > since).sort((a, b) => a.at - b.at);
  }

  /** What a process before this one noted: events "counts.noted". Points of this process are kept: they are the newer ones. */
  recall(events: readonly PastEvent[]): void {
    for (const { at, facts } of events) {
      const { nodes, waiting, labels, providers } = facts as unknown as Partial<Counts>;
      if (nodes === undefined || labels === undefined || providers === undefined || waiting === undefined)
        continue;
      const point = { at: momentOf(at), nodes, waiting, labels, providers };
      if (!this.#points.has(point.at)) this.#keep(point);
    }
  }

  /** Notes no more points; those that are known stay. */
  close(): void {
    this.#timer?.cancel();
  }

  /** At multiples of the step by the wall clock, so that points of several processes and of former ones lie at the same moments. */
  #wait(): void {
    const ms = HISTORY_STEP_MS - (this.#clock.now() % HISTORY_STEP_MS);
    this.#timer = this.#clock.setTimer(ms, () => this.#note(), { background: true });
  }

  #note(): void {
    // Half a tree would look like a fall to zero. A missing point is no number.
    if (this.#isComplete()) {
      const { labels, providers, ...all } = this.#population.counts();
      const counts = { ...all, labels: largest(labels), providers: largest(providers) };
      this.#journal.write({ event: "counts.noted", facts: counts });
      this.#keep({ at: momentOf(this.#clock.now()), ...counts });
    }
    this.#wait();
  }

  #keep(point: HistoryPoint): void {
    this.#points.set(point.at, point);
    for (const at of this.#points.keys()) if (at <= this.#clock.now() - DAY_MS) this.#points.delete(at);
  }
}

/** A timer may be early or late by some milliseconds. */
function momentOf(at: number): number {
  return Math.round(at / HISTORY_STEP_MS) * HISTORY_STEP_MS;
}

/** The entries with the highest sums: an installation with thousands of labels must not fill the journal. */
function largest(counts: Counts["labels"]): Counts["labels"] {
  const entries = Object.entries(counts);
  if (entries.length <= MOST) return counts;
  const size = (one: Readonly<Record<string, number>>) =>
    Object.values(one).reduce((sum, count) => sum + count, 0);
  return Object.fromEntries(entries.sort(([, a], [, b]) => size(b) - size(a)).slice(0, MOST));
}
