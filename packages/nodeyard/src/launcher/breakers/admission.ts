import type { Offering } from "../../scheduler/index.ts";
import type { ViewEvent } from "../../view/index.ts";
import type { Breakers } from "./breakers.ts";
import type { LabelBudgets } from "./label-budgets.ts";
import type { Candidate } from "./launch-line.ts";
import type { Failure } from "./rule.ts";
import type { LaunchPermit } from "./tries.ts";

/** The right to launch once; to be given back by one of `failed`, `succeeded` and `leave`. */
export interface Admitted {
  readonly permit: LaunchPermit;
  readonly label: string;
}

/** Whether a launch may begin: by the label's budget over all places, then by the breaker of this one. */
export class Admission {
  readonly #breakers: Breakers;
  readonly #budgets: LabelBudgets;
  /** Those that the budgets count: each is given back once, whatever goes wrong after it was. */
  readonly #counted = new Set<Admitted>();

  constructor(breakers: Breakers, budgets: LabelBudgets) {
    this.#breakers = breakers;
    this.#budgets = budgets;
  }

  /**
   * Waits up to `limitMs` while launches under way must tell first whether the label works. `counted` is false for what costs no
   * machine. Rejects with BudgetSpent, OfferingClosed or the signal's reason.
   */
  async enter(
    launch: Candidate & { readonly offering: Offering; readonly label: string; readonly request: string },
    counted: boolean,
    limitMs: number,
    signal: AbortSignal,
  ): Promise<Admitted> {
    const { offering, label, request } = launch;
    if (counted) await this.#budgets.enter(label, launch, limitMs, signal);
    try {
      const admitted = { permit: await this.#breakers.enter(offering, request), label };
      if (counted) this.#counted.add(admitted);
      return admitted;
    } catch (error) {
      if (counted) this.#budgets.left(label);
      throw error;
    }
  }

  async succeeded(admitted: Admitted): Promise<void> {
    if (this.#counted.delete(admitted)) await this.#budgets.succeeded(admitted.label);
    await this.#breakers.succeeded(admitted.permit);
  }

  /** To be awaited before the node's record tells of it. */
  async failed(admitted: Admitted, failure: Omit<Failure, "probe">): Promise<void> {
    if (this.#counted.delete(admitted)) await this.#budgets.failed(admitted.label, failure);
    await this.#breakers.failed(admitted.permit, failure);
  }

  /** It ended without a verdict on label or place. */
  async leave(admitted: Admitted): Promise<void> {
    if (this.#counted.delete(admitted)) this.#budgets.left(admitted.label);
    await this.#breakers.leave(admitted.permit);
  }

  /** What the view knew before anyone listened. */
  seed(): void {
    this.#breakers.seed();
    this.#budgets.seed();
  }

  onEvent(event: ViewEvent): void {
    this.#breakers.onEvent(event);
    this.#budgets.onEvent(event);
  }

  /** The budget is another one by now: what was closed by the former may be open. */
  reconsider(): void {
    this.#breakers.seed();
    this.#budgets.reconsider();
  }

  /** Forgets what nobody asks for any more. */
  async sweep(): Promise<void> {
    await this.#budgets.sweep();
    await this.#breakers.sweep();
  }
}
