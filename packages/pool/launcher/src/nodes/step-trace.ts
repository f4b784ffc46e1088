import type { NodeRecord } from "@nodeyard/model";
import { defined } from "@nodeyard/runtime";
import type { LiveTask } from "@nodeyard/telemetry";
import { treeNow } from "@nodeyard/tree";
import type { NodeHandles, TraceSubject } from "./handles.ts";

/** Steps of one try that are reported, at most: the rest is counted. */
const MOST = 64;

type TraceContext = Pick<NodeHandles, "clock" | "tree" | "journal" | "live" | "stepsUnderWay">;

/**
 * Writes the steps of a launch or deletion into the journal as each ends: name, begin, duration, error. A driver that yields
 * one step again and again while it waits makes one event of it, and a try never makes more than so many.
 */
export class StepTrace {
  readonly #context: TraceContext;
  readonly #subject: TraceSubject;
  readonly #record: NodeRecord | undefined;
  /** The step under way. `began` is tree time for people, `mono` the monotonic time by which its duration is measured. */
  #current: { readonly step: string; readonly began: number; readonly mono: number } | undefined;
  /** The entry in the stack dump; each step sets when it counts as stuck. */
  readonly #live: LiveTask;
  /**
   * Steps that are in the journal; steps after the first 64 only count into `#unreported`, unless the attempt ends in them with an
   * error.
   */
  #reported = 0;
  #unreported = 0;

  /** `record` is the node's, for the log. */
  constructor(context: TraceContext, subject: TraceSubject, record?: NodeRecord) {
    this.#context = context;
    this.#subject = subject;
    this.#record = record;
    const name = `${subject.of} ${subject.node}, attempt ${subject.attempt}`;
    this.#live = context.live.begin({ kind: "machine", name, site: "launcher/nodes/step-trace.ts" });
  }

  /** `withinMs`: how long it may take. The same name again continues the step, and only its time limit starts anew. */
  begin(step: string, withinMs?: number): void {
    this.#live.at(step, withinMs);
    if (this.#current?.step === step) return;
    this.#finish({ next: step });
    const { clock } = this.#context;
    const began = Math.round(treeNow(this.#context));
    this.#current = { step, began, mono: clock.monotonic() };
    this.#context.stepsUnderWay.set(this.#subject.node, { ...this.#subject, step, began });
  }

  /** The try has ended; with an error it ended in the step under way. */
  end(error?: string): void {
    this.#context.live.end(this.#live);
    this.#finish({
      ...defined({ error }),
      ...(this.#unreported === 0 ? {} : { unreported: this.#unreported }),
    });
  }

  /** `next`: so that the log of a process that was killed names the step it was at. */
  #finish(more: { readonly error?: string; readonly unreported?: number; readonly next?: string }): void {
    const current = this.#current;
    if (current === undefined) return;
    this.#current = undefined;
    this.#context.stepsUnderWay.delete(this.#subject.node);
    if (this.#reported >= MOST && (more.next !== undefined || Object.keys(more).length === 0)) {
      this.#unreported++;
      return;
    }
    this.#reported++;
    const { clock, journal } = this.#context;
    const { node, of, attempt } = this.#subject;
    const { step, began, mono } = current;
    const ms = Math.round(clock.monotonic() - mono);
    const facts = { of, attempt, step, began, ms, ...more };
    journal.write({ event: "node.step", node, facts, ...(this.#record && { record: this.#record }) });
  }
}
