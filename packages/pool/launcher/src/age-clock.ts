import { type Clock, type Moment, StoredTimes } from "@nodeyard/runtime";
import { type Tree, treeNow } from "@nodeyard/tree";

/** A clock that is off by more than this has jumped, milliseconds (rule 8). */
const JUMP_MS = 30_000;
/** Sweeps that must agree on the time after a jump before anything is deleted by age again. */
const AGREE = 3;

/**
 * Tree time, against which the ages of records are computed. When wall time jumps, it continues by the monotonic clock, and deletions by
 * age are suspended until several sweeps agree on the new time. No timer waits for an instant of tree time: an instant that another
 * process stored is translated once, when it is first seen, to the monotonic clock.
 */
export class AgeClock {
  readonly #handles: { readonly clock: Clock; readonly tree: Tree };
  readonly #stored = new StoredTimes();
  /** The time by both clocks when this process began: shows whether the local clock was set before `start`. */
  readonly #begun: { readonly wall: number; readonly steady: number };
  /** A trusted tree time, and the monotonic time at which it was read: from these two the time goes on while the clock is in doubt. */
  #anchor: number;
  #anchorMono: number;
  /** How far the clock was off at the last sweep, and how many sweeps agree on it. Undefined: it is trusted. */
  #doubt: { readonly off: number; readonly agreed: number } | undefined;

  constructor(handles: { readonly clock: Clock; readonly tree: Tree }) {
    this.#handles = handles;
    this.#anchor = treeNow(handles);
    this.#anchorMono = handles.clock.monotonic();
    this.#begun = { wall: handles.clock.now(), steady: this.#anchorMono };
  }

  /** Milliseconds of tree time. Each call looks for a jump, so time is also watched between sweeps. */
  now(): number {
    const real = treeNow(this.#handles);
    const steady = this.#steady();
    if (Math.abs(real - steady) <= JUMP_MS) {
      if (this.#doubt === undefined) this.#set(real);
    } else this.#doubt ??= { off: real - steady, agreed: 0 };
    return this.#doubt === undefined ? real : steady;
  }

  /** The present by both clocks, for reading stored times. */
  moment(): Moment {
    return { now: this.now(), steady: this.#handles.clock.monotonic(), trusted: this.trusted };
  }

  /** The moment of the monotonic clock for a tree time that is stored under the name `key`; see StoredTimes. */
  stored(key: string, instant: number, aheadMs: number): number {
    return this.#stored.read(key, instant, this.moment(), aheadMs);
  }

  /** Notes that the instant just stored under `key` is `aheadMs` from now, whatever the clock of its writer says. */
  saw(key: string, instant: number, aheadMs: number): void {
    this.#stored.saw(key, instant, this.moment(), aheadMs);
  }

  /** How long ago an instant in the record of a node or request was, by id: as long as either clock says, milliseconds. */
  age(id: string, instant: number): number {
    return this.#stored.age(`age ${id}`, instant, this.moment());
  }

  /** The node or request has gone. */
  forgetAge(id: string): void {
    this.forget(`age ${id}`);
  }

  /** Forgets the instant under `key`: its record has been deleted. */
  forget(key: string): void {
    this.#stored.forget(key);
  }

  /** Tree time of a moment of the monotonic clock, to be stored or shown: whole milliseconds. */
  treeTimeOf(steady: number): number {
    return Math.round(this.now() + (steady - this.#handles.clock.monotonic()));
  }

  /** Whether something may be deleted because of its age now. */
  get trusted(): boolean {
    this.now();
    return this.#doubt === undefined;
  }

  /**
   * The first offset to tree time has been measured, so the current time can be trusted. Exception: when the local clock was set during
   * the measurement, as happens at boot, the offset may belong to the time before.
   */
  start(): void {
    const { clock } = this.#handles;
    const jump = clock.now() - this.#begun.wall - (clock.monotonic() - this.#begun.steady);
    this.#set(treeNow(this.#handles));
    this.#doubt = Math.abs(jump) > JUMP_MS ? { off: 0, agreed: 0 } : undefined;
  }

  /** To be called at each sweep, after a write of our own, which tells the tree's time. */
  sweep(): void {
    this.now();
    if (this.#doubt === undefined) return;
    const real = treeNow(this.#handles);
    const off = real - this.#steady();
    const agreed = Math.abs(off - this.#doubt.off) <= JUMP_MS ? this.#doubt.agreed + 1 : 1;
    this.#doubt = { off, agreed };
    if (agreed < AGREE) return;
    this.#set(real);
    this.#doubt = undefined;
  }

  /** Tree time by the monotonic clock alone. */
  #steady(): number {
    return this.#anchor + this.#handles.clock.monotonic() - this.#anchorMono;
  }

  #set(real: number): void {
    this.#anchor = real;
    this.#anchorMono = this.#handles.clock.monotonic();
  }
}
