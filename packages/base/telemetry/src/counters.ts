import {
  type CounterLabels,
  type CounterName,
  counterNames,
  type DurationLabels,
  type DurationName,
  durationNames,
  type LevelLabels,
  type LevelName,
  levelNames,
  type Measure,
} from "./measures.ts";

/** Labels of a figure, by name; each set of values is a figure of its own. */
export type Labels = Readonly<Record<string, string>>;

/** One moment's figure, as it comes. A time is in milliseconds, and has the details of its labels too. */
export type Sample =
  | { readonly kind: "count"; readonly name: CounterName; readonly value: number; readonly labels: Labels }
  | { readonly kind: "time"; readonly name: DurationName; readonly value: number; readonly labels: Labels }
  | { readonly kind: "level"; readonly name: LevelName; readonly value: number; readonly labels: Labels };

/** A figure that is kept: a sum, or the last one. */
export interface Figure<Name extends string> {
  readonly name: Name;
  /** In the order of the measure. Values that are not known are "". */
  readonly labels: Labels;
  readonly value: number;
}

/** Durations of one name and labels. */
export interface Histogram {
  readonly name: DurationName;
  readonly labels: Labels;
  readonly count: number;
  /** Sum of the durations, seconds; `count` is their number. */
  readonly sumSeconds: number;
  /** How many were no longer than each bucket of the name, as many as it has. */
  readonly atMost: readonly number[];
}

/** A figure that is counted on in place: it is handed out as read-only. */
type Kept<T> = { -readonly [Key in keyof T]: T[Key] };

/**
 * All that one process counts, times and notes, by name and labels. Who wants to send it on at once listens. The tables in measures.ts
 * say which names and labels there are, so the number of figures is bounded by the values that labels take.
 */
export class Counters {
  readonly #counts = new Map<string, Kept<Figure<CounterName>>>();
  readonly #levels = new Map<string, Kept<Figure<LevelName>>>();
  readonly #times = new Map<string, Kept<Omit<Histogram, "atMost">> & { readonly atMost: number[] }>();
  readonly #listeners = new Set<(sample: Sample) => void>();

  /** Adds `by` to a counter. Names with labels need all of them. */
  add<Name extends CounterName>(
    name: Name,
    by: number,
    ...[given]: Record<never, string> extends CounterLabels<Name> ? [] : [CounterLabels<Name>]
  ): void {
    const all = (given ?? {}) as Labels;
    const key = keyOf(name, counterNames[name], all);
    let known = this.#counts.get(key);
    if (known === undefined) {
      known = { name, labels: inOrder(counterNames[name], all), value: 0 };
      this.#counts.set(key, known);
    }
    known.value += by;
    this.#emit({ kind: "count", name, labels: known.labels, value: by });
  }

  /** Notes that something took `ms`. */
  time<Name extends DurationName>(name: Name, ms: number, all: DurationLabels<Name>): void {
    const { buckets } = durationNames[name];
    const key = keyOf(name, durationNames[name], all);
    let known = this.#times.get(key);
    if (known === undefined) {
      const labels = inOrder(durationNames[name], all);
      known = { name, labels, count: 0, sumSeconds: 0, atMost: buckets.map(() => 0) };
      this.#times.set(key, known);
    }
    const seconds = ms / 1000;
    known.count++;
    known.sumSeconds += seconds;
    for (let at = 0; at < buckets.length; at++) if (seconds <= buckets[at]!) known.atMost[at]!++;
    this.#emit({ kind: "time", name, labels: all as Labels, value: ms });
  }

  /** Notes what something is from now on. */
  level<Name extends LevelName>(name: Name, value: number, given: LevelLabels<Name>): void {
    const labels = inOrder(levelNames[name], given);
    this.#levels.set(keyOf(name, levelNames[name], given), { name, labels, value });
    this.#emit({ kind: "level", name, labels, value });
  }

  /** The sum of a counter over all labels that contain `labels`. */
  value(name: CounterName, labels: Labels = {}): number {
    let sum = 0;
    for (const entry of this.#counts.values()) {
      if (entry.name !== name) continue;
      if (Object.entries(labels).every(([key, wanted]) => entry.labels[key] === wanted)) sum += entry.value;
    }
    return sum;
  }

  /** The counters as they are; the figures go on changing after that. */
  list(): readonly Figure<CounterName>[] {
    return [...this.#counts.values()];
  }

  levels(): readonly Figure<LevelName>[] {
    return [...this.#levels.values()];
  }

  times(): readonly Histogram[] {
    return [...this.#times.values()];
  }

  /** Calls `listener`, which must not throw, with each new sample; returns a function that ends that. */
  onSample(listener: (sample: Sample) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #emit(sample: Sample): void {
    for (const listener of this.#listeners) listener(sample);
  }
}

/** The labels in the order of the measure, so that the order of the caller makes no difference. */
function inOrder({ labels }: Measure, given: Labels): Labels {
  return Object.fromEntries(labels.map((key) => [key, given[key] ?? ""]));
}

/** A text for each set of values; the lengths keep values with spaces apart. It is made some ten times for each request. */
function keyOf(name: string, { labels }: Measure, given: Labels): string {
  let key = name;
  for (const label of labels) {
    const value = given[label] ?? "";
    key += ` ${value.length} ${value}`;
  }
  return key;
}
