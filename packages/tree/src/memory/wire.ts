import type { Clock } from "@nodeyard/runtime";

/** One direction of a connection: what is sent arrives in order, each thing after a delay of its own. */
export class Wire {
  readonly #clock: Clock;
  readonly #latency: (() => number) | undefined;
  readonly #under: (() => void)[] = [];
  #last = 0;

  /** `latency` in milliseconds; without it things arrive as soon as the present work is done, and no timer is set. */
  constructor(clock: Clock, latency: (() => number) | undefined) {
    this.#clock = clock;
    this.#latency = latency;
  }

  send(arrive: () => void, extraMs = 0): void {
    this.#under.push(arrive);
    if (this.#latency === undefined && extraMs === 0 && this.#last === 0) {
      queueMicrotask(() => this.#arrive());
      return;
    }
    const now = this.#clock.monotonic();
    // Nothing overtakes: what is sent behind something slow is slow as well.
    this.#last = Math.max(this.#last, now + (this.#latency?.() ?? 0) + extraMs);
    this.#clock.setTimer(this.#last - now, () => this.#arrive(), { background: true });
  }

  #arrive(): void {
    this.#under.shift()?.();
  }
}
