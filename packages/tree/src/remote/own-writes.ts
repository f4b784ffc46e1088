import type { Op } from "../contract.ts";

/** Digits of a sequence number. */
const DIGITS = 10;
/** The end of a sequential path. ZooKeeper's counter is a signed 32-bit number, so that after 2^31 children the digits follow a minus sign. */
const SEQUENTIAL = /-?[0-9]{10}$/;

/** Numbers of the writes in flight by path or prefix, the oldest first. */
type WriteNumbers = Map<string, Set<number>>;

/**
 * The paths on which this process has a write in flight. A sequential create does not know its path yet, so it is recorded
 * under the prefix before the digits; a create of another process with the same prefix is then held back as well. That
 * delays the event by one reply and not by all writes in flight, because an event can only come from a write that began
 * before the event arrived: it waits for those writes only.
 */
export class OwnWrites {
  readonly #paths: WriteNumbers = new Map();
  readonly #prefixes: WriteNumbers = new Map();
  #last = 0;

  /** Number of the last write that began. */
  get last(): number {
    return this.#last;
  }

  /** Records a write; returns its number for `end`. */
  begin(ops: readonly Op[]): number {
    const write = ++this.#last;
    for (const op of ops) {
      if (op.op === "check") continue;
      const numbers = this.#of(op);
      const found = numbers.get(op.path);
      if (found === undefined) numbers.set(op.path, new Set([write]));
      else found.add(write);
    }
    return write;
  }

  end(ops: readonly Op[], write: number): void {
    for (const op of ops) {
      if (op.op === "check") continue;
      const numbers = this.#of(op);
      const found = numbers.get(op.path);
      found?.delete(write);
      if (found?.size === 0) numbers.delete(op.path);
    }
  }

  /** Whether a write with a number up to `upTo` is in flight that may have changed `path` or, with `created`, created it. */
  inFlight(path: string, created: boolean, upTo: number = this.#last): boolean {
    if (reaches(this.#paths.get(path), upTo)) return true;
    if (!created || this.#prefixes.size === 0 || !SEQUENTIAL.test(path)) return false;
    const prefix = path.slice(0, -DIGITS);
    return (
      reaches(this.#prefixes.get(prefix), upTo) ||
      (prefix.endsWith("-") && reaches(this.#prefixes.get(prefix.slice(0, -1)), upTo))
    );
  }

  #of(op: Op): WriteNumbers {
    return op.op === "create" && op.sequential === true ? this.#prefixes : this.#paths;
  }
}

function reaches(numbers: Set<number> | undefined, upTo: number): boolean {
  for (const oldest of numbers ?? []) return oldest <= upTo;
  return false;
}
