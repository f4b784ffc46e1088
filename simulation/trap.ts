import type { Op } from "@nodeyard/tree";

/** Moments between a launcher's check of its right to act and the action that follows. */
export const TRAPS = [
  "session expired at a check",
  "session expired at a create",
  "lost reply, server behind",
] as const;
export type TrapAt = (typeof TRAPS)[number];

/** A fault for the next launcher that reaches a moment: it has checked its lock, and its write or machine is in flight. */
export class Trap {
  readonly #armed = new Map<TrapAt, number>();
  readonly #count: (at: TrapAt) => void;

  constructor(count: (at: TrapAt) => void) {
    this.#count = count;
  }

  arm(at: TrapAt): void {
    this.#armed.set(at, (this.#armed.get(at) ?? 0) + 1);
  }

  disarm(): void {
    this.#armed.clear();
  }

  /** Whether the fault strikes here; if so, it has struck. */
  strikes(at: TrapAt): boolean {
    const left = this.#armed.get(at) ?? 0;
    if (left === 0) return false;
    this.#armed.set(at, left - 1);
    this.#count(at);
    return true;
  }
}

/** Whether a commit takes, checks or releases a lock and also writes something: what it writes is right only while the session lives. */
export function isFenced(ops: readonly Op[]): boolean {
  return ops.length > 1 && ops.some(({ path }) => path.includes("__lock__"));
}
