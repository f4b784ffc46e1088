import { abortable } from "@nodeyard/driver";
import { type Clock, NodeyardError } from "@nodeyard/runtime";
import { inTime } from "../../coordination/index.ts";

/** No launch of a label may start now: too many failed in all its pools together. */
export class BudgetSpent extends NodeyardError {
  constructor(label: string, why: string) {
    super("launcher.budget_spent", `no launches of ${label} for now: ${why}`);
  }
}

export function crowded(label: string): BudgetSpent {
  return new BudgetSpent(label, "as many are under way as its budget of failed launches allows");
}

/** A launch of a node whose record is `building`. */
export interface Candidate {
  readonly node: string;
  /** One of this node failed already. */
  readonly again: boolean;
}

interface Turn extends Candidate, PromiseWithResolvers<void> {
  admitted: boolean;
}

/** Launches of one label that wait for others to tell whether it works, and how many of this process are under way. */
export class LaunchLine {
  readonly #waiting = new Set<Turn>();
  readonly #clock: Clock;
  #underWay = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** Nothing waits, and nothing is under way. */
  get isIdle(): boolean {
    return this.isEmpty && this.#underWay === 0;
  }

  /** Whether an older node waits already: ids grow, so that this one would wait as well. */
  isBehind({ node, again }: Candidate): boolean {
    const [first] = this.#waiting;
    return !again && first !== undefined && first.node < node;
  }

  /** Resolves when it is let in; rejects as it was judged, with `late()` after `limitMs`, or with the signal's reason. */
  async wait(
    candidate: Candidate,
    limitMs: number,
    late: () => Error,
    signal: AbortSignal,
    joined: () => void,
  ): Promise<void> {
    const turn: Turn = { ...Promise.withResolvers<void>(), ...candidate, admitted: false };
    this.#waiting.add(turn);
    joined();
    try {
      await inTime(this.#clock, limitMs, abortable(turn.promise, signal), late);
    } catch (error) {
      this.#waiting.delete(turn);
      // It may have been let in at the moment that it gave up.
      if (turn.admitted) this.left();
      throw error;
    }
  }

  /** Lets in whoever may begin, and refuses whoever is given an error. */
  serve(judge: (candidate: Candidate) => "begin" | "wait" | Error): void {
    for (const turn of [...this.#waiting]) {
      const judged = judge(turn);
      if (judged === "wait") continue;
      this.#waiting.delete(turn);
      if (judged === "begin") {
        this.#underWay++;
        turn.admitted = true;
        turn.resolve();
      } else turn.reject(judged);
    }
  }

  /** One that was let in has ended. */
  left(): void {
    this.#underWay = Math.max(0, this.#underWay - 1);
  }
}
