import type { Op } from "@nodeyard/tree";

/** Where a launcher has looked whether it may, and what it does then is still to come. */
export const AMBUSHES = ["session expired at a check", "session expired at a create"] as const;
export type AmbushAt = (typeof AMBUSHES)[number];

/** Moments at which the next launcher that comes there loses its session: it looked at its lock, and has not acted yet. */
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

/** Whether a commit checks a lock, or takes it: what it writes is right only while the session lives. */
export function isFenced(ops: readonly Op[]): boolean {
  return ops.length > 1 && ops.some(({ op, path }) => op === "check" && path.includes("__lock__"));
}
