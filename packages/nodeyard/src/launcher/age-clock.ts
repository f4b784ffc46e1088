import type { Clock } from "@nodeyard/runtime";
import type { Tree } from "@nodeyard/tree";
import { treeNow } from "./context.ts";

/** A clock that is off by more than this has jumped, milliseconds (design, rule 8). */
const JUMP_MS = 30_000;
/** Sweeps that must agree on the time after a jump before anything is deleted by age again. */
const AGREE = 3;

/**
 * Tree time for ages and waits. It runs on by the monotonic clock when wall time jumps, so that nothing waits for a day
 * and nothing is a day older at once; until several sweeps agree on the new time it is not trusted for deletions.
 */
export class AgeClock {
  readonly #handles: { readonly clock: Clock; readonly tree: Tree };
  #anchor: number;
  #anchorMono: number;
  /** How far the clock was off at the last sweep, and how many sweeps agree on it. Undefined: it is trusted. */
  #doubt: { readonly off: number; readonly agreed: number } | undefined;

  constructor(handles: { readonly clock: Clock; readonly tree: Tree }) {
    this.#handles = handles;
    this.#anchor = treeNow(handles);
    this.#anchorMono = handles.clock.monotonic();
  }

  /** Milliseconds of tree time. */
  now(): number {
    const real = treeNow(this.#handles);
    const steady = this.#steady();
    if (Math.abs(real - steady) <= JUMP_MS) {
      if (this.#doubt === undefined) this.#set(real);
    } else this.#doubt ??= { off: real - steady, agreed: 0 };
    return this.#doubt === undefined ? real : steady;
  }

  /** Whether something may be deleted because of its age now. */
  get trusted(): boolean {
    this.now();
    return this.#doubt === undefined;
  }

  /** The offset to the tree was just learnt for the first time: whatever the time is now, it is right. */
  start(): void {
    this.#set(treeNow(this.#handles));
    this.#doubt = undefined;
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

  #steady(): number {
    return this.#anchor + this.#handles.clock.monotonic() - this.#anchorMono;
  }

  #set(real: number): void {
    this.#anchor = real;
    this.#anchorMono = this.#handles.clock.monotonic();
  }
}
