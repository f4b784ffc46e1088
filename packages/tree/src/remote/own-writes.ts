import type { Op } from "../contract.ts";

const DIGITS = 10;
const SEQUENTIAL = /-?[0-9]{10}$/;

/** Numbers of the writes in flight on a path or prefix, oldest first. */
type WriteNumbers = Map<string, Set<number>>;

/**
 * The paths on which a write of our own is in flight. A sequential create does not know its path yet, so it is known by
 * what stands before the digits; another's create with the same prefix is then held back too. That delays it by one
 * reply, not by as many as we keep in flight: an event can only come from a write that was begun before it, so it waits
 * for those alone.
 */
export class OwnWrites {
  readonly #paths: WriteNumbers = new Map();
  readonly #prefixes: WriteNumbers = new Map();
  #last = 0;

  /** The number of the last write that was begun. */
  get last(): number {
    return this.#last;
  }

  /** Returns the write's number, to be given back to `end`. */
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

  /** Whether a write begun no later than `upTo` is in flight that could have changed `path`, or, if `created`, made it. */
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
