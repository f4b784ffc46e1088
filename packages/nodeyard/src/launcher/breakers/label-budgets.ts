import type { NodeRecord } from "@nodeyard/model";
import { budgetLabel, type LabelBudget } from "../../operations/index.ts";
import { labelKey, type OfferingFact } from "../../scheduler/index.ts";
import type { NodeEntry, ViewEvent } from "../../view/index.ts";
import type { Handles } from "../handles.ts";
import { BudgetRecords } from "./budget-records.ts";
import {
  budgetOf,
  failedLaunches,
  hasPlace,
  isLabelHopeless,
  isSpent,
  isTrusted,
  type LabelTally,
  levelNow,
  newTally,
  places,
  roomAt,
  together,
} from "./label-rule.ts";
import { BudgetSpent, type Candidate, crowded, LaunchLine } from "./launch-line.ts";
import type { BreakerRule, Failure } from "./rule.ts";

type Failed = Pick<Failure, "kind" | "error">;

interface Entry {
  /** What this process counted; `together` with the record it is what is known. */
  own: LabelTally;
  /** Steady milliseconds, from which one may be tried; undefined: the label is open. */
  closedUntil: number | undefined;
  readonly line: LaunchLine;
  /** How often one of it went well. */
  successes: number;
  /** Failures to be counted, and the end of the counting. */
  failed: Failed[];
  counted: Promise<void>;
}

type BudgetHandles = Pick<Handles, "ages" | "clock" | "counters" | "journal" | "log" | "tree" | "view">;

/** A label that was closed and that nobody has tried for so long is no longer configured, milliseconds. */
const FORGOTTEN_MS = 86_400_000;

/**
 * What launches of a label may cost that never works, over all its places and all launchers: failed ones and those under way together
 * stay within the budget, so that a crowd that starts at once does as well. Failures of a label that does not work are counted in a
 * record that all see, before the node's own record tells that its launch has ended; the nodes that are being made are in every
 * launcher's view, and the oldest of them have the places that are left. A label that works is not held up, and writes nothing: once
 * one launch of it went well, those under way count no more until several have failed in a row.
 */
export class LabelBudgets {
  readonly #context: BudgetHandles;
  readonly #tell: (key: string, fact: OfferingFact | undefined) => void;
  readonly #rule: () => BreakerRule;
  readonly #costsMachine: (record: NodeRecord) => boolean;
  readonly #records: BudgetRecords;
  readonly #entries = new Map<string, Entry>();

  /** `costsMachine`: whether a node that is being made is counted at all. */
  constructor(
    context: BudgetHandles,
    tell: (key: string, fact: OfferingFact | undefined) => void,
    rule: () => BreakerRule,
    costsMachine: (record: NodeRecord) => boolean,
  ) {
    this.#context = context;
    this.#tell = tell;
    this.#rule = rule;
    this.#costsMachine = costsMachine;
    this.#records = new BudgetRecords(context);
  }

  /** What the view knew before anyone listened. */
  seed(): void {
    for (const label of this.#records.labels()) this.#onRecord(label, undefined);
  }

  onEvent(event: ViewEvent): void {
    if (event.type === "node") this.#onNode(event);
    else if (event.type === "complete") for (const [label, entry] of this.#entries) this.#serve(label, entry);
    else if (event.type === "own") {
      const label = budgetLabel(event.path);
      if (label === undefined) return;
      const gone = event.after === undefined && event.before !== undefined;
      this.#onRecord(label, gone ? this.#records.gone(label, event.before.data) : undefined);
    }
  }

  /** The budget is another one by now. */
  reconsider(): void {
    const now = this.#context.clock.monotonic();
    for (const [label, entry] of this.#entries) {
      if (entry.closedUntil !== undefined && !isSpent(this.#known(label, entry), now, this.#rule())) {
        entry.closedUntil = undefined;
        this.#tell(labelKey(label), undefined);
      } else this.#closeIfSpent(label, entry);
      this.#serve(label, entry);
    }
  }

  /**
   * To be awaited before each launch, and to be followed by one of `succeeded`, `failed` and `left`. Rejects with BudgetSpent, or with
   * the signal's reason.
   */
  async enter(label: string, launch: Candidate, limitMs: number, signal: AbortSignal): Promise<void> {
    const entry = this.#entryOf(label);
    const { line } = entry;
    const behind = line.isBehind(launch) && !isTrusted(this.#known(label, entry), this.#rule());
    const late = () => new BudgetSpent(label, `the launches under way did not end within ${limitMs} ms`);
    await line.wait(launch, limitMs, late, signal, () => {
      if (!behind) this.#serve(label, entry);
    });
  }

  async succeeded(label: string): Promise<void> {
    const entry = this.left(label);
    this.#works(label, entry);
    await this.#records.clear(label);
  }

  /** Resolves when the other launchers can know of it. */
  async failed(label: string, failure: Failed): Promise<void> {
    const entry = this.left(label);
    if (failure.kind === "quota") return;
    entry.failed.push(failure);
    entry.counted = entry.counted.then(() => this.#count(label, entry));
    await entry.counted;
  }

  /** A launch that was admitted showed nothing about the label. */
  left(label: string): Entry {
    const entry = this.#entryOf(label);
    entry.line.left();
    return entry;
  }

  /** Forgets what nobody asks for any more. */
  async sweep(): Promise<void> {
    const now = this.#context.clock.monotonic();
    for (const label of this.#records.labels()) {
      const found = this.#records.of(label);
      if (found !== undefined && now - found.spent.at >= FORGOTTEN_MS) await this.#records.forget(label);
    }
    for (const [label, entry] of this.#entries) {
      const { own, closedUntil, line } = entry;
      if (!line.isIdle) continue;
      if (closedUntil !== undefined && now - closedUntil < FORGOTTEN_MS) continue;
      if (closedUntil === undefined && levelNow(own, now, this.#rule()) > 0) continue;
      if (closedUntil !== undefined) this.#tell(labelKey(label), undefined);
      this.#entries.delete(label);
    }
  }

  #entryOf(label: string): Entry {
    let entry = this.#entries.get(label);
    if (entry === undefined) {
      const own = newTally(this.#hasMachine(label));
      const line = new LaunchLine(this.#context.clock);
      entry = { own, closedUntil: undefined, line, successes: 0, failed: [], counted: Promise.resolve() };
      this.#entries.set(label, entry);
    }
    return entry;
  }

  #known(label: string, { own }: Entry): LabelTally {
    return together(own, this.#records.of(label), this.#context.clock.monotonic(), this.#rule());
  }

  /** Whether the tree shows a machine of it that somebody launched: a restart is no reason to doubt. */
  #hasMachine(label: string): boolean {
    const { nodes } = this.#context.view;
    for (const id of nodes.byLabel.get(label)) if (isUp(nodes.byId.get(id))) return true;
    return false;
  }

  #onNode({ before, after }: Extract<ViewEvent, { type: "node" }>): void {
    if (this.#entries.size === 0) return;
    const up = isUp(after) && !isUp(before);
    const ended = this.#isMade(before) && !this.#isMade(after);
    if (!up && !ended) return;
    for (const label of (after ?? before)!.record.type) {
      const entry = this.#entries.get(label);
      if (entry === undefined) continue;
      if (up) this.#works(label, entry);
      else this.#serve(label, entry);
    }
  }

  /** `gone`: what the record said that is removed. */
  #onRecord(label: string, gone: LabelBudget | undefined): void {
    const entry = this.#entryOf(label);
    const now = this.#context.clock.monotonic();
    if (gone !== undefined) {
      entry.own = { ...together(entry.own, gone, now, this.#rule()), row: 0 };
      this.#open(label, entry);
    } else this.#closeIfSpent(label, entry);
    this.#serve(label, entry);
  }

  /** A launch of it went well, here or elsewhere. */
  #works(label: string, entry: Entry): void {
    entry.own = { ...entry.own, worked: true, row: 0 };
    entry.successes++;
    if (isTrusted(this.#known(label, entry), this.#rule())) this.#open(label, entry);
    this.#serve(label, entry);
  }

  /** All that failed meanwhile at once, so that a crowd writes seldom. */
  async #count(label: string, entry: Entry): Promise<void> {
    const some = entry.failed.splice(0);
    if (some.length === 0) return;
    const { clock } = this.#context;
    const rule = this.#rule();
    const { successes } = entry;
    let after = failedLaunches(this.#known(label, entry), some, clock.monotonic(), rule);
    if (!isTrusted(after, rule)) {
      await this.#records.write(label, (before) => {
        const now = clock.monotonic();
        after = failedLaunches(together(entry.own, before, now, rule), some, now, rule);
        return budgetOf(label, after);
      });
    }
    const wentWell = entry.successes !== successes;
    entry.own = { ...after, worked: entry.own.worked, row: wentWell ? 0 : after.row };
    this.#closeIfSpent(label, entry);
    this.#serve(label, entry);
  }

  /** Lets in whoever may begin, and ends the wait of whoever waits for nothing. */
  #serve(label: string, entry: Entry): void {
    if (entry.line.isEmpty) return;
    const { clock, view } = this.#context;
    const rule = this.#rule();
    const tally = this.#known(label, entry);
    if (isTrusted(tally, rule)) return entry.line.serve(() => "begin");
    const most = places(tally, clock.monotonic(), rule);
    if (most === 0) return entry.line.serve(() => this.#refusal(label, tally));
    // Older nodes that are not in the view yet have their places too.
    if (!view.complete) return;
    const fits = hasPlace(this.#making(label), most, rule);
    entry.line.serve(({ node, again }) => {
      if (fits(node, again)) return "begin";
      return again ? crowded(label) : "wait";
    });
  }

  /** Ids of the nodes of a label that are being made, whoever makes them, in ascending order. */
  #making(label: string): readonly string[] {
    const { nodes } = this.#context.view;
    return [...nodes.byLabel.get(label)].filter((id) => this.#isMade(nodes.byId.get(id))).sort();
  }

  #isMade(entry: NodeEntry | undefined): boolean {
    if (entry === undefined) return false;
    const { state } = entry.record;
    return (state === "init" || state === "building") && this.#costsMachine(entry.record);
  }

  #refusal(label: string, { row, last }: LabelTally): BudgetSpent {
    return new BudgetSpent(
      label,
      `${row} launches failed in a row, and max-failed-launches-per-hour is ${this.#rule().failedPerHour}; the last error: ${last?.error ?? "none"}`,
    );
  }

  #closeIfSpent(label: string, entry: Entry): void {
    const { ages, clock, log, journal, counters } = this.#context;
    const now = clock.monotonic();
    const rule = this.#rule();
    const tally = this.#known(label, entry);
    if (!isSpent(tally, now, rule) || tally.last === undefined) return;
    const { kind, error } = tally.last;
    const opened = entry.closedUntil === undefined;
    entry.closedUntil = roomAt(tally, now, rule);
    const { row: failures } = tally;
    const since = ages.treeTimeOf(tally.since);
    const fact = { why: "budget", until: entry.closedUntil, since, failures, kind, error } as const;
    this.#tell(labelKey(label), { ...fact, prober: null, hopeless: isLabelHopeless(tally, rule) });
    if (!opened) return;
    const facts = { label, ...fact, until: ages.treeTimeOf(fact.until) };
    log.warn(facts, "too many launches of a label failed: it is not launched for a while");
    journal.write({ event: "label.closed", facts });
    counters.add("launcher.label_budgets", 1, { label, change: "spent" });
  }

  #open(label: string, entry: Entry): void {
    if (entry.closedUntil === undefined) return;
    entry.closedUntil = undefined;
    this.#tell(labelKey(label), undefined);
    const { ages, log, journal, counters } = this.#context;
    const facts = { label, since: ages.treeTimeOf(entry.own.since) };
    log.info(facts, "a label works again");
    journal.write({ event: "label.open", facts });
    counters.add("launcher.label_budgets", 1, { label, change: "works" });
  }
}

function isUp(entry: NodeEntry | undefined): boolean {
  if (entry === undefined || entry.record.externalId === null) return false;
  return entry.record.state === "ready" || entry.record.state === "in-use";
}
