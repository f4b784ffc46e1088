import type { Op } from "@nodeyard/tree";

/** Where a launcher has looked whether it may, and what it does then is still to come. */
export const AMBUSHES = [
  "session expired at a check",
  "session expired at a create",
  "lost reply, server behind",
] as const;
export type AmbushAt = (typeof AMBUSHES)[number];

/** What is to befall the next launcher that comes to a moment: it has looked at its lock, and its write or machine is under way. */
export class Ambush {
  readonly #armed = new Map<AmbushAt, number>();
  readonly #count: (at: AmbushAt) => void;

  constructor(count: (at: AmbushAt) => void) {
    this.#count = count;
  }

  arm(at: AmbushAt): void {
    this.#armed.set(at, (this.#armed.get(at) ?? 0) + 1);
  }

  disarm(): void {
    this.#armed.clear();
  }

  /** Whether it strikes here; it has struck then. */
  strikes(at: AmbushAt): boolean {
    const left = this.#armed.get(at) ?? 0;
    if (left === 0) return false;
    this.#armed.set(at, left - 1);
    this.#count(at);
    return true;
  }
}

/** Whether a commit takes, checks or gives back a lock, and writes besides: what it writes is right only while the session lives. */
export function isFenced(ops: readonly Op[]): boolean {
  return ops.length > 1 && ops.some(({ path }) => path.includes("__lock__"));
}
