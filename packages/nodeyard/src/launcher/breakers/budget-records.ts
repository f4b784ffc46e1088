import { messageOf } from "@nodeyard/runtime";
import { ensurePath, TreeError } from "@nodeyard/tree";
import {
  BUDGETS,
  budgetLabel,
  budgetPath,
  decodeBudget,
  encodeBudget,
  type LabelBudget,
} from "../../operations/index.ts";
import type { Handles } from "../handles.ts";

type RecordParts = Pick<Handles, "ages" | "counters" | "log" | "tree" | "view">;

interface Found {
  readonly budget: LabelBudget | undefined;
  readonly data: Uint8Array;
  readonly version: number;
}

/** Tries to write against others who write the same record, at most. */
const WRITES = 8;

/**
 * The records by which launchers know of each other's failures. Their times are moments of the monotonic clock here, so that a budget
 * drains whatever becomes of tree time, and tree time in the tree.
 */
export class BudgetRecords {
  readonly #handles: RecordParts;

  constructor(handles: RecordParts) {
    this.#handles = handles;
  }

  /** As the view has it. */
  of(label: string): LabelBudget | undefined {
    const found = this.#seen(label);
    if (found !== undefined && found.budget === undefined)
      this.#handles.counters.add("view.records_skipped", 1, { kind: "budget", code: "budget.unreadable" });
    return found?.budget;
  }

  /** What the record said that is gone. */
  gone(label: string, data: Uint8Array): LabelBudget | undefined {
    const budget = this.#decode(label, data);
    for (const field of ["since", "spent"]) this.#handles.ages.forget(nameOf(label, field));
    return budget;
  }

  /** Labels that have one, as the view has it. */
  labels(): readonly string[] {
    return [...this.#handles.view.own.keys()].flatMap((path) => budgetLabel(path) ?? []);
  }

  /**
   * Writes what `next` makes of the record, anew when somebody else was quicker. False: nobody knows whether it is written. That is
   * said, no more.
   */
  write(label: string, next: (before: LabelBudget | undefined) => LabelBudget): Promise<boolean> {
    const { tree } = this.#handles;
    const path = budgetPath(label);
    let sent: Omit<Found, "budget"> | undefined;
    return this.#persist(label, async (again) => {
      if (again) await ensurePath(tree, BUDGETS);
      const found = again ? await this.#read(label) : this.#seen(label);
      // The answer was lost, and not the write.
      if (found?.version === sent?.version && sent !== undefined && equal(found?.data, sent.data)) return;
      const data = encodeBudget(this.#toStore(next(found?.budget)));
      sent = { data, version: found === undefined ? 0 : found.version + 1 };
      if (found === undefined) await tree.create(path, data);
      else await tree.set(path, data, { version: found.version });
    });
  }

  /** Removes it, whatever others write: a launch went well. */
  async clear(label: string): Promise<void> {
    if (this.#seen(label) === undefined) return;
    await this.#persist(label, async (again) => {
      const found = again ? await this.#read(label) : this.#seen(label);
      if (found !== undefined) await this.#handles.tree.delete(budgetPath(label), { version: found.version });
    });
  }

  /** Removes it unless somebody writes it. */
  async forget(label: string): Promise<void> {
    const found = this.#seen(label);
    if (found === undefined) return;
    await this.#handles.tree.delete(budgetPath(label), { version: found.version }).catch((error: unknown) => {
      if (!(error instanceof TreeError)) throw error;
    });
  }

  async #persist(label: string, work: (again: boolean) => Promise<void>): Promise<boolean> {
    for (let attempt = 1; ; attempt++) {
      try {
        await work(attempt > 1);
        return true;
      } catch (error) {
        if (!(error instanceof TreeError)) throw error;
        if (attempt < WRITES) continue;
        const facts = { label, error: messageOf(error) };
        this.#handles.log.warn(facts, "cannot record how many launches of a label failed");
        return false;
      }
    }
  }

  async #read(label: string): Promise<Found | undefined> {
    const { tree } = this.#handles;
    const path = budgetPath(label);
    await tree.sync(path);
    try {
      const { data, stat } = await tree.get(path);
      return { budget: this.#decode(label, data), data, version: stat.version };
    } catch (error) {
      if (error instanceof TreeError && error.code === "tree.no_node") return undefined;
      throw error;
    }
  }

  #decode(label: string, data: Uint8Array): LabelBudget | undefined {
    const budget = decodeBudget(data);
    if (budget === undefined) return undefined;
    const { since, spent } = budget;
    const read = (field: string, instant: number) =>
      this.#handles.ages.stored(nameOf(label, field), instant, 0);
    return { ...budget, since: read("since", since), spent: { ...spent, at: read("spent", spent.at) } };
  }

  #toStore(budget: LabelBudget): LabelBudget {
    const { ages } = this.#handles;
    const { since, spent } = budget;
    return {
      ...budget,
      since: ages.treeTimeOf(since),
      spent: { ...spent, at: ages.treeTimeOf(spent.at) },
    };
  }

  #seen(label: string): Found | undefined {
    const entry = this.#handles.view.own.get(budgetPath(label));
    return entry && { budget: this.#decode(label, entry.data), data: entry.data, version: entry.version };
  }
}

/** What a time of a budget's record is known by. */
function nameOf(label: string, field: string): string {
  return `budget ${label} ${field}`;
}

function equal(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a !== undefined && Buffer.from(a).equals(b);
}
