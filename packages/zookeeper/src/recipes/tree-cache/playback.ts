import { Fifo } from "./fifo.ts";

/** A place in the order of events whose effect may still have to be read from the server. */
export interface Slot {
  apply: (() => void) | undefined;
}

/** Applies effects strictly in the order in which their places were reserved, whichever is known first. */
export class Playback {
  readonly #slots = new Fifo<Slot>();
  #draining = false;

  /** Places that wait, for their own effect or for an earlier one. */
  get length(): number {
    return this.#slots.length;
  }

  reserve(): Slot {
    const slot: Slot = { apply: undefined };
    this.#slots.push(slot);
    return slot;
  }

  settle(slot: Slot, apply: () => void): void {
    slot.apply = apply;
    this.#drain();
  }

  /** For effects that need no read. */
  push(apply: () => void): void {
    this.#slots.push({ apply });
    this.#drain();
  }

  /** Not re-entrant: what an effect adds is applied after it. */
  #drain(): void {
    if (this.#draining) return;
    this.#draining = true;
    try {
      for (let apply = this.#next(); apply !== undefined; apply = this.#next()) apply();
    } finally {
      this.#draining = false;
    }
  }

  #next(): (() => void) | undefined {
    const apply = this.#slots.peek()?.apply;
    if (apply !== undefined) this.#slots.shift();
    return apply;
  }
}
