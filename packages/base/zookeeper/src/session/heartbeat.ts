import type { Clock, Timer } from "../types.ts";

/** What the heartbeat needs of a connection. All times are monotonic milliseconds. */
export interface Beating {
  readonly lastSentAt: number;
  readonly lastReceivedAt: number;
  /** Sends a ping and returns its send time. */
  ping(): number;
  /** Called when nothing was received for two thirds of the session timeout. */
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

  /** Records the answer to the ping; returns when that ping was sent. */
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
      // If this process was paused, the answer may lie unread in the socket: let the event loop read once before giving up.
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
    // While a ping is unanswered, look again after `pingAfter` as well. A pong does not call this method, and watch events postpone
    // `untilDead` although they do not extend trust: trust counts from this client's last answered request (rule 1).
    const untilPing =
      this.#pingSentAt === undefined ? this.#beating.lastSentAt + this.#pingAfter - now : this.#pingAfter;
    this.#arm(Math.min(untilPing, untilDead));
  }

  #arm(ms: number): void {
    if (this.#stopped) return;
    this.#timer = this.#clock.setTimer(Math.max(1, ms), () => this.#tick());
  }
}
