import { abortable, type LabelConfig } from "@nodeyard/driver";
import { NodeyardError } from "@nodeyard/runtime";
import { inTime } from "../../coordination/index.ts";
import { labelKey, type OfferingFact } from "../../scheduler/index.ts";
import type { Context } from "../context.ts";
import {
  failedLaunch,
  isFull,
  isLabelHopeless,
  isSpent,
  type LabelTally,
  levelNow,
  newTally,
  roomAt,
} from "./label-rule.ts";
import type { BreakerRule, Failure } from "./rule.ts";

/** No launch of a label may start now: too many failed in all its places together. */
export class BudgetSpent extends NodeyardError {
  constructor(label: string, why: string) {
    super("launcher.budget_spent", `no launch of ${label} is begun now: ${why}`);
  }
}

/** A launch that waits for one under way to tell whether the label works. */
interface Turn extends PromiseWithResolvers<void> {
  admitted: boolean;
}

interface Entry {
  tally: LabelTally;
  /** Tree time, milliseconds, from which one may be tried; undefined: the label is open. */
  closedUntil: number | undefined;
  readonly waiting: Set<Turn>;
}

/** A label that was closed and that nobody has tried for so long is no longer configured, milliseconds. */
const FORGOTTEN_MS = 86_400_000;

/**
 * What launches of a label may cost that never works, over all its places: failed ones and those under way together stay within
 * the budget, so that a crowd that starts at once does as well. A label that works is not held up: once one launch of it
 * went well, those under way count no more until several have failed in a row.
 */
export class LabelBudgets {
  readonly #context: Pick<Context, "ages" | "clock" | "counters" | "journal" | "log" | "view">;
  readonly #tell: (key: string, fact: OfferingFact | undefined) => void;
  readonly #rule: () => BreakerRule;
  readonly #entries = new Map<string, Entry>();

  constructor(
    context: Pick<Context, "ages" | "clock" | "counters" | "journal" | "log" | "view">,
    tell: (key: string, fact: OfferingFact | undefined) => void,
    rule: () => BreakerRule,
  ) {
    this.#context = context;
    this.#tell = tell;
    this.#rule = rule;
  }

  /** To be awaited before each launch, and to be followed by `ended`. Rejects with BudgetSpent, or with the signal's reason. */
  async enter({ name }: LabelConfig, limitMs: number, signal: AbortSignal): Promise<void> {
    const entry = this.#entryOf(name);
    const { clock, ages } = this.#context;
    if (isSpent(entry.tally, ages.now(), this.#rule())) throw this.#refusal(name, entry);
    if (entry.waiting.size === 0 && !isFull(entry.tally, ages.now(), this.#rule())) {
      this.#count(entry, 1);
      return;
    }
    const turn: Turn = { ...Promise.withResolvers<void>(), admitted: false };
    entry.waiting.add(turn);
    try {
      const late = () => new BudgetSpent(name, `those under way told nothing within ${limitMs} ms`);
      await inTime(clock, limitMs, abortable(turn.promise, signal), late);
    } catch (error) {
      entry.waiting.delete(turn);
      // It may have been let in at the moment that it gave up.
      if (turn.admitted) this.#left(name, entry);
      throw error;
    }
  }

  /** A launch that was let in went well ("ready"), failed, or told nothing of the label (undefined). */
  ended({ name }: LabelConfig, outcome: "ready" | Pick<Failure, "kind" | "error"> | undefined): void {
    const entry = this.#entryOf(name);
    if (outcome === "ready") {
      entry.tally = { ...entry.tally, worked: true, row: 0 };
      this.#open(name, entry);
    } else if (outcome !== undefined && outcome.kind !== "quota") {
      entry.tally = failedLaunch(entry.tally, outcome, this.#context.ages.now(), this.#rule());
      this.#closeIfSpent(name, entry);
    }
    this.#left(name, entry);
  }

  /** Forgets what nobody asks for any more. */
  sweep(): void {
    const now = this.#context.ages.now();
    for (const [label, entry] of this.#entries) {
      const { tally, closedUntil, waiting } = entry;
      if (tally.inFlight > 0 || waiting.size > 0) continue;
      if (closedUntil !== undefined && now - closedUntil < FORGOTTEN_MS) continue;
      if (closedUntil === undefined && levelNow(tally, now, this.#rule()) > 0) continue;
      if (closedUntil !== undefined) this.#tell(labelKey(label), undefined);
      this.#entries.delete(label);
    }
  }

  #entryOf(label: string): Entry {
    let entry = this.#entries.get(label);
    if (entry === undefined) {
      entry = { tally: newTally(this.#works(label)), closedUntil: undefined, waiting: new Set() };
      this.#entries.set(label, entry);
    }
    return entry;
  }

  /** Whether the tree shows a machine of it that somebody launched: a restart is no reason to doubt. */
  #works(label: string): boolean {
    const { nodes } = this.#context.view;
    for (const id of nodes.byLabel.get(label)) {
      const record = nodes.byId.get(id)?.record;
      if (record === undefined || record.externalId === null) continue;
      if (record.state === "ready" || record.state === "in-use") return true;
    }
    return false;
  }

  #left(label: string, entry: Entry): void {
    this.#count(entry, -1);
    const now = this.#context.ages.now();
    for (const turn of entry.waiting) {
      if (isSpent(entry.tally, now, this.#rule())) turn.reject(this.#refusal(label, entry));
      else if (isFull(entry.tally, now, this.#rule())) return;
      else {
        this.#count(entry, 1);
        turn.admitted = true;
        turn.resolve();
      }
      entry.waiting.delete(turn);
    }
  }

  #count(entry: Entry, change: 1 | -1): void {
    entry.tally = { ...entry.tally, inFlight: entry.tally.inFlight + change };
  }

  #refusal(label: string, { tally }: Entry): BudgetSpent {
    return new BudgetSpent(
      label,
      `${tally.row} launches failed in a row, and max-failed-launches-per-hour is ${this.#rule().failedPerHour}; the last error: ${tally.last?.error ?? "none"}`,
    );
  }

  #closeIfSpent(label: string, entry: Entry): void {
    const { ages, log, journal, counters } = this.#context;
    const now = ages.now();
    const rule = this.#rule();
    const { tally } = entry;
    if (!isSpent(tally, now, rule) || tally.last === undefined) return;
    const { kind, error } = tally.last;
    const opened = entry.closedUntil === undefined;
    entry.closedUntil = roomAt(tally, now, rule);
    const fact = {
      why: "budget",
      until: entry.closedUntil,
      since: tally.since,
      failures: tally.row,
    } as const;
    this.#tell(labelKey(label), {
      ...fact,
      prober: null,
      hopeless: isLabelHopeless(tally, rule),
      kind,
      error,
    });
    if (!opened) return;
    const facts = { label, ...fact, kind, error };
    log.warn(facts, "too many launches of a label failed: nothing is launched of it for a while");
    journal.write({ event: "label.closed", facts });
    counters.add("launcher.label_budgets", 1, { label, change: "spent" });
  }

  #open(label: string, entry: Entry): void {
    if (entry.closedUntil === undefined) return;
    entry.closedUntil = undefined;
    this.#tell(labelKey(label), undefined);
    const facts = { label, since: entry.tally.since };
    const { log, journal, counters } = this.#context;
    log.info(facts, "a label works again");
    journal.write({ event: "label.open", facts });
    counters.add("launcher.label_budgets", 1, { label, change: "works" });
  }
}
