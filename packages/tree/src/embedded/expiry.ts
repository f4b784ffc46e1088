import type { Clock, Timer } from "@nodeyard/runtime";

/** Deadlines are rounded up to this, so that many sessions cost few wake-ups. */
const TICK_MS = 100;
/** A wake-up later than this means that the process stood still: what its clients said meanwhile is still unread. */
const LATE_MS = 250;
/** How often in a row that is done. A process that is always late must still let go of clients that are dead. */
const GRACES = 3;

interface Entry {
  timeoutMs: number;
  deadline: number;
  /** How often its timeout was counted anew since it was heard of. */
  graces: number;
}

/**
 * Says which sessions were not heard of for their timeout. Works on the monotonic clock: wall time may jump. A process
 * that stood still counts every timeout anew, within a bound; a session that lives longer than asked harms nobody.
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

  /** Starts, or starts anew, the timeout of a session. */
  start(id: bigint, timeoutMs: number): void {
    const deadline = this.#deadline(timeoutMs);
    this.#entries.set(id, { timeoutMs, deadline, graces: 0 });
    this.#arm(deadline);
  }

  /** The session was heard of. */
  touch(id: bigint): void {
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
