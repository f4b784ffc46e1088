import type { Clock } from "@nodeyard/runtime";

interface Message {
  /** Monotonic milliseconds. */
  readonly at: number;
  readonly arrive: () => void;
}

/**
 * One direction of a connection. Messages arrive in order, each after its own delay. Messages that arrive at the same
 * moment are delivered together, as if from one packet.
 */
export class Wire {
  readonly #clock: Clock;
  readonly #latency: (() => number) | undefined;
  /** Under way, in the order of sending, which is that of arrival. */
  readonly #under: Message[] = [];
  /** When the latest message arrives, monotonic milliseconds; 0: none had to wait. */
  #last = 0;

  /** `latency` returns milliseconds. Without it messages arrive in a microtask, and no timer is set. */
  constructor(clock: Clock, latency: (() => number) | undefined) {
    this.#clock = clock;
    this.#latency = latency;
  }

  /** `arrive` is called once, never before `send` returns. `extraMs` delays this message and all behind it. */
  send(arrive: () => void, extraMs = 0): void {
    const now = this.#clock.monotonic();
    if (this.#latency === undefined && extraMs === 0 && this.#last === 0) {
      this.#under.push({ at: now, arrive });
      queueMicrotask(() => this.#under.shift()?.arrive());
      return;
    }
    // TCP keeps the order: a message behind a slow one is slow as well.
    const at = Math.max(this.#last, now + (this.#latency?.() ?? 0) + extraMs);
    const isFirst = this.#under.at(-1)?.at !== at;
    this.#last = at;
    this.#under.push({ at, arrive });
    if (isFirst) this.#clock.setTimer(at - now, () => this.#arriveUpTo(at), { background: true });
  }

  /** Delivers messages up to a time. Timers of the real clock may fire out of order, so it does not deliver only its own message. */
  #arriveUpTo(at: number): void {
    const later = this.#under.findIndex((message) => message.at > at);
    const packet = this.#under.splice(0, later === -1 ? this.#under.length : later);
    for (const { arrive } of packet) arrive();
  }
}
