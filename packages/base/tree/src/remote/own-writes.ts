import type { Op } from "../contract.ts";

/** Digits of a sequence number. */
const DIGITS = 10;
/** The end of a sequential path. ZooKeeper's counter is a signed 32-bit number, so that after 2^31 children the digits follow a minus sign. */
const SEQUENTIAL = /-?[0-9]{10}$/;

/** Numbers of the writes in flight by path or prefix, the oldest first. */
type WriteNumbers = Map<string, number[]>;

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
      if (found === undefined) numbers.set(op.path, [write]);
      else if (found.at(-1) !== write) found.push(write);
    }
    return write;
  }

  end(ops: readonly Op[], write: number): void {
    for (const op of ops) {
      if (op.op === "check") continue;
      const numbers = this.#of(op);
      const found = numbers.get(op.path);
      const at = found?.indexOf(write) ?? -1;
      if (found === undefined || at < 0) continue;
      // Writes are answered in their order, so that it is the first one, except after a call that was given up.
      if (found.length === 1) numbers.delete(op.path);
      else found.splice(at, 1);
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

function reaches(numbers: readonly number[] | undefined, upTo: number): boolean {
  return numbers !== undefined && numbers[0]! <= upTo;
}
