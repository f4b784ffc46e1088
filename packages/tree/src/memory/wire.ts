import type { Clock } from "@nodeyard/runtime";

interface Message {
  /** Monotonic milliseconds. */
  readonly at: number;
  readonly arrive: () => void;
}

/**
 * One direction of a connection: what is sent arrives in order, each message after a delay of its own. Messages that
 * arrive at the same moment are read together, as from one packet.
 */
export class Wire {
  readonly #clock: Clock;
  readonly #latency: (() => number) | undefined;
  readonly #under: Message[] = [];
  #last = 0;

  /** `latency` in milliseconds; without it messages arrive as soon as the present work is done, and no timer is set. */
  constructor(clock: Clock, latency: (() => number) | undefined) {
    this.#clock = clock;
    this.#latency = latency;
  }

  send(arrive: () => void, extraMs = 0): void {
    const now = this.#clock.monotonic();
    if (this.#latency === undefined && extraMs === 0 && this.#last === 0) {
      this.#under.push({ at: now, arrive });
      queueMicrotask(() => this.#under.shift()?.arrive());
      return;
    }
    // Nothing overtakes: what is sent behind something slow is slow as well.
    const at = Math.max(this.#last, now + (this.#latency?.() ?? 0) + extraMs);
    const isFirst = this.#under.at(-1)?.at !== at;
    this.#last = at;
    this.#under.push({ at, arrive });
    if (isFirst) this.#clock.setTimer(at - now, () => this.#arriveUpTo(at), { background: true });
  }

  /** A timer of the real clock may fire before one that was set for an earlier moment. */
  #arriveUpTo(at: number): void {
    const later = this.#under.findIndex((message) => message.at > at);
    const packet = this.#under.splice(0, later === -1 ? this.#under.length : later);
    for (const { arrive } of packet) arrive();
  }
}
