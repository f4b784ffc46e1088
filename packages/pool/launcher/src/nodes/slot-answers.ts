import { DriverError } from "@nodeyard/driver";
import type { SlotPlace } from "@nodeyard/model";
import type { Action, PlannedSlot, SchedulerEvent } from "@nodeyard/scheduler";
import { FenceLost } from "@nodeyard/tree";

/**
 * Slots that launches wait for, and the scheduler's answers. One launch waits per node. Who gets which slot is the scheduler's
 * decision; this only carries question and answer.
 */
export class SlotAnswers {
  readonly #push: (event: SchedulerEvent) => void;
  /** By node id. */
  readonly #waiting = new Map<string, PromiseWithResolvers<PlannedSlot>>();

  constructor(push: (event: SchedulerEvent) => void) {
    this.#push = push;
  }

  /**
   * Resolves with the slot that the scheduler chose. Rejects with DriverError when there will be no slot, with FenceLost when no request
   * wants the node any more, or with the signal's reason.
   */
  async next(
    want: {
      readonly request: string;
      readonly node: string;
      readonly provider: string;
      readonly label: string;
    },
    signal: AbortSignal,
  ): Promise<PlannedSlot> {
    signal.throwIfAborted();
    const { node } = want;
    const answer = Promise.withResolvers<PlannedSlot>();
    const end = () => {
      if (this.#waiting.delete(node)) this.#push({ type: "slot-left", node });
      answer.reject(signal.reason);
    };
    this.#waiting.set(node, answer);
    this.#push({ type: "slot-wanted", ...want });
    signal.addEventListener("abort", end, { once: true });
    try {
      return await answer.promise;
    } finally {
      signal.removeEventListener("abort", end);
    }
  }

  /** Called with the scheduler's answer: a slot, or why there will be none. The launch may have ended meanwhile. */
  take(action: Extract<Action, { type: "slot" }>): void {
    const answer = this.#waiting.get(action.node);
    this.#waiting.delete(action.node);
    if (action.slot !== undefined) {
      // The launch has ended between the choice and now.
      if (answer === undefined) this.lost(action.slot);
      else answer.resolve(action.slot);
    } else {
      const { why, gone } = action.refused;
      answer?.reject(gone ? new FenceLost(why) : new DriverError("transient", why));
    }
  }

  /** A slot that was chosen is not claimed. */
  lost({ backing, slot }: SlotPlace): void {
    this.#push({ type: "slot-lost", place: { backing, slot } });
  }
}
