import type { Op } from "../contract.ts";

const DIGITS = 10;
const SEQUENTIAL = /-?[0-9]{10}$/;

/**
 * The paths on which a write of our own is in flight. A sequential create does not know its path yet, so it is known by
 * what stands before the digits; another's create with the same prefix is then held back too, which only delays it.
 */
export class OwnWrites {
  readonly #paths = new Map<string, number>();
  readonly #prefixes = new Map<string, number>();

  begin(ops: readonly Op[]): void {
    for (const op of ops) {
      if (op.op === "check") continue;
      count(op.op === "create" && op.sequential === true ? this.#prefixes : this.#paths, op.path, 1);
    }
  }

  end(ops: readonly Op[]): void {
    for (const op of ops) {
      if (op.op === "check") continue;
      count(op.op === "create" && op.sequential === true ? this.#prefixes : this.#paths, op.path, -1);
    }
  }

  inFlight(path: string): boolean {
    if (this.#paths.has(path)) return true;
    if (this.#prefixes.size === 0 || !SEQUENTIAL.test(path)) return false;
    const prefix = path.slice(0, -DIGITS);
    return this.#prefixes.has(prefix) || (prefix.endsWith("-") && this.#prefixes.has(prefix.slice(0, -1)));
  }
}

function count(map: Map<string, number>, key: string, change: 1 | -1): void {
  const sum = (map.get(key) ?? 0) + change;
  if (sum > 0) map.set(key, sum);
  else map.delete(key);
}
