import { type FailureRecord, subjectOf } from "@nodeyard/model";
import { seededRandom } from "@nodeyard/runtime";
import {
  type Failure,
  type Failures,
  failureRule,
  newTally,
  onFailures,
  type Tally,
  together,
} from "../src/index.ts";

/** Three failed launches in an hour are all that a label or an offering has. */
export const rule = failureRule(3);

/** What a launcher counts of failures, and the records that it shares with others: what it says of both is the scheduler's input. */
export class FailureBook {
  /** What was said last, by key. */
  readonly known = new Map<string, Failures>();
  readonly #tallies = new Map<string, Tally>();
  readonly #records = new Map<string, FailureRecord>();
  readonly #probers = new Map<string, string>();
  readonly #random = seededRandom(1);
  readonly #tell: (key: string, after: Failures | undefined) => void;
  readonly #now: () => number;

  constructor(tell: (key: string, after: Failures | undefined) => void, now: () => number) {
    this.#tell = tell;
    this.#now = now;
  }

  record(key: string): FailureRecord | undefined {
    return this.#records.get(key);
  }

  prober(key: string): string | undefined {
    return this.#probers.get(key);
  }

  /** Somebody wrote what failed, tries what is closed, or found that it works. */
  set(key: string, record: FailureRecord | undefined, prober?: string): void {
    if (record === undefined) this.#records.delete(key);
    else this.#records.set(key, record);
    if (prober === undefined || record === undefined) this.#probers.delete(key);
    else this.#probers.set(key, prober);
    this.#publish(key);
  }

  /** A launch of ours succeeded. */
  worked(key: string): void {
    const tally = this.#tallies.get(key) ?? newTally();
    this.#tallies.set(key, { ...tally, worked: true, row: 0 });
    this.set(key, undefined);
  }

  /** Nobody launched of it for long. */
  forget(key: string): void {
    this.#tallies.delete(key);
    this.#publish(key);
  }

  count(key: string, failure: Omit<Failure, "probe">, request: string): void {
    const probe = this.#probers.get(key) === request;
    const own = this.#tallies.get(key) ?? newTally();
    const failures = [{ ...failure, probe }];
    const before = this.#records.get(key);
    const { scope } = subjectOf(key)!;
    const outcome = onFailures(scope, own, before, failures, this.#now(), rule, this.#random);
    this.#tallies.set(key, outcome.tally);
    if (outcome.record !== undefined) this.#records.set(key, outcome.record);
    if (probe) this.#probers.delete(key);
    this.#publish(key);
  }

  /** An offering is judged by its record alone. */
  #publish(key: string): void {
    const isLabel = subjectOf(key)?.scope === "label";
    const record = this.#records.get(key);
    const own = isLabel ? this.#tallies.get(key) : undefined;
    const tally = together(own ?? newTally(), record, this.#now(), rule);
    if (record === undefined && own === undefined) this.known.delete(key);
    else this.known.set(key, { tally, pause: record?.pause, prober: this.#probers.get(key) });
    this.#tell(key, this.known.get(key));
  }
}
