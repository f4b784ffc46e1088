import type { Clock, Timer } from "@nodeyard/runtime";

/** Deadlines are rounded up to a multiple of this, so that many sessions need few timers (milliseconds). */
const TICK_MS = 100;
/** A timer that fires later than this shows that the process was paused, so messages of its clients are still unread (milliseconds). */
const LATE_MS = 250;
/** How many times in a row a late timer extends a session. A process that is always late must still expire dead clients. */
const GRACES = 3;

interface Entry {
  timeoutMs: number;
  deadline: number;
  /** How often a late timer extended the session since its client's last message. */
  graces: number;
}

/**
 * Expires sessions whose client was silent for its timeout. Uses the monotonic clock, because wall time may jump. After a
 * pause of the process every timeout restarts, at most GRACES times: a session that lives a little too long does no harm.
 */
export class Expiry {
  readonly #clock: Clock;
  readonly #onExpired: (id: bigint) => void;
  readonly #entries = new Map<bigint, Entry>();
  #timer: Timer | undefined;
  #wakeAt = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, onExpired: (id: bigint) => void) {
    this.#clock = clock;
    this.#onExpired = onExpired;
  }

  /** Starts or restarts the timeout of a session. */
  start(id: bigint, timeoutMs: number): void {
    const deadline = this.#deadline(timeoutMs);
    this.#entries.set(id, { timeoutMs, deadline, graces: 0 });
    this.#arm(deadline);
  }

  /** The session's client sent something. */
  touch(id: bigint): void {
    // Called for every request, so it sets no timer: the present one fires, finds nothing expired, and is set again.
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.deadline = this.#deadline(entry.timeoutMs);
    entry.graces = 0;
  }

  stop(id: bigint): void {
    this.#entries.delete(id);
  }

  close(): void {
    this.#entries.clear();
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Monotonic milliseconds at which the session expires, rounded up to a tick. */
  #deadline(timeoutMs: number): number {
    return Math.ceil((this.#clock.monotonic() + timeoutMs) / TICK_MS) * TICK_MS;
  }

  #arm(at: number): void {
    if (at >= this.#wakeAt) return;
    this.#timer?.cancel();
    this.#wakeAt = at;
    const wait = Math.max(0, at - this.#clock.monotonic());
    this.#timer = this.#clock.setTimer(wait, () => this.#wake(), { background: true });
  }

  #wake(): void {
    const now = this.#clock.monotonic();
    const late = now - this.#wakeAt;
    this.#wakeAt = Number.POSITIVE_INFINITY;
    this.#timer = undefined;
    if (late > LATE_MS) {
      for (const entry of this.#entries.values())
        if (entry.graces++ < GRACES) entry.deadline = this.#deadline(entry.timeoutMs);
    }
    const expired: bigint[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const [id, entry] of this.#entries) {
      if (entry.deadline <= now) expired.push(id);
      else next = Math.min(next, entry.deadline);
    }
    for (const id of expired) {
      this.#entries.delete(id);
      this.#onExpired(id);
    }
    if (next < Number.POSITIVE_INFINITY) this.#arm(next);
  }
}
