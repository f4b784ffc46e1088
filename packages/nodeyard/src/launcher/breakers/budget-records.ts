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
import type { Context } from "../context.ts";

type Handles = Pick<Context, "counters" | "log" | "tree" | "view">;

interface Found {
  readonly budget: LabelBudget | undefined;
  readonly data: Uint8Array;
  readonly version: number;
}

/** Tries to write against others who write the same record, at most. */
const WRITES = 8;

/** The records by which launchers know of each other's failures. */
export class BudgetRecords {
  readonly #handles: Handles;

  constructor(handles: Handles) {
    this.#handles = handles;
  }

  /** As the view has it. */
  of(label: string): LabelBudget | undefined {
    const found = this.#seen(label);
    if (found !== undefined && found.budget === undefined)
      this.#handles.counters.add("view.records_skipped", 1, { kind: "budget", code: "budget.unreadable" });
    return found?.budget;
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
      const data = encodeBudget(next(found?.budget));
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
        this.#handles.log.warn(facts, "could not write how many launches of a label failed");
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
      return { budget: decodeBudget(data), data, version: stat.version };
    } catch (error) {
      if (error instanceof TreeError && error.code === "tree.no_node") return undefined;
      throw error;
    }
  }

  #seen(label: string): Found | undefined {
    const entry = this.#handles.view.own.get(budgetPath(label));
    return entry && { budget: decodeBudget(entry.data), data: entry.data, version: entry.version };
  }
}

function equal(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a !== undefined && Buffer.from(a).equals(b);
}
