import type { Clock, Timer } from "../types.ts";

/** What the heartbeat needs of a connection. All times are monotonic milliseconds. */
export interface Beating {
  readonly lastSentAt: number;
  readonly lastReceivedAt: number;
  /** Returns the time at which it was sent. */
  ping(): number;
  /** Nothing was heard for too long. */
  silent(ms: number): void;
}

/**
 * Pings when nothing was sent for a third of the session timeout, and gives the connection up when nothing was
 * received for two thirds, so that a third is left to reach another server.
 */
export class Heartbeat {
  readonly #clock: Clock;
  readonly #beating: Beating;
  readonly #pingAfter: number;
  readonly #deadAfter: number;
  #timer: Timer | undefined;
  #pingSentAt: number | undefined;
  #suspect = false;
  #stopped = false;

  constructor(clock: Clock, timeoutMs: number, beating: Beating) {
    this.#clock = clock;
    this.#beating = beating;
    this.#pingAfter = timeoutMs / 3;
    this.#deadAfter = (timeoutMs * 2) / 3;
    this.#arm(this.#pingAfter);
  }

  /** The ping was answered; returns when it was sent. */
  pong(): number | undefined {
    const at = this.#pingSentAt;
    this.#pingSentAt = undefined;
    return at;
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  #tick(): void {
    const now = this.#clock.monotonic();
    const { lastReceivedAt, lastSentAt } = this.#beating;
    const silence = now - lastReceivedAt;
    if (silence >= this.#deadAfter) {
      // When this process was held up, the answer may lie in the socket unread: one more look before giving up.
      if (this.#suspect) {
        this.#beating.silent(silence);
        return;
      }
      this.#suspect = true;
      this.#arm(1);
      return;
    }
    this.#suspect = false;
    if (this.#pingSentAt === undefined && now - lastSentAt >= this.#pingAfter) {
      this.#pingSentAt = this.#beating.ping();
    }
    const untilDead = lastReceivedAt + this.#deadAfter - now;
    // With a ping under way another look comes all the same: its answer does not wake us, and what the server tells on
    // its own puts `untilDead` off, while trust counts from our own last answered request.
    const untilPing =
      this.#pingSentAt === undefined ? this.#beating.lastSentAt + this.#pingAfter - now : this.#pingAfter;
    this.#arm(Math.min(untilPing, untilDead));
  }

  #arm(ms: number): void {
    if (this.#stopped) return;
    this.#timer = this.#clock.setTimer(Math.max(1, ms), () => this.#tick());
  }
}
