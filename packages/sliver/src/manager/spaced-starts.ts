import type { Task } from "../core/index.ts";

/**
 * At the first sync after a boot everything is stopped: it starts one after another. Who starts later than the first,
 * and when. Times are monotonic milliseconds.
 */
export class SpacedStarts {
  readonly #spacing: number;
  readonly #times = new Map<number, number>();
  #first = true;

  /** Milliseconds; 0: as fast as may be. */
  constructor(spacing: number) {
    this.#spacing = spacing;
  }

  /**
   * To be called with the tasks of each sync. Whose time has come is forgotten, and so is who is not to be started any
   * more: nothing would be done for either, and `next` must not ask for it.
   */
  see(tasks: readonly Task[], now: number): void {
    const starting = new Set(
      tasks.flatMap(({ steps, incarnation }) => (steps.includes("start") ? [incarnation] : [])),
    );
    if (this.#first)
      for (const [order, incarnation] of [...starting].entries())
        this.#times.set(incarnation, now + order * this.#spacing);
    this.#first = false;
    for (const [incarnation, time] of this.#times)
      if (time <= now || !starting.has(incarnation)) this.#times.delete(incarnation);
  }

  rests(incarnation: number): boolean {
    return this.#times.has(incarnation);
  }

  /** When the next one may start, always after the last `see`; Infinity when none waits. */
  get next(): number {
    return Math.min(...this.#times.values());
  }
}
