interface Pool {
  readonly session: bigint;
  readonly labels: readonly string[];
  goneAt: number | undefined;
}

/** The accept of a pool may be under way when its component goes: calls are late by so much at most, milliseconds. */
const UNDER_WAY_MS = 5_000;

/** The pools that stand in the registry, and those that left it a moment ago. */
export class Registry {
  readonly #pools = new Map<string, Pool>();

  put(path: string, session: bigint, labels: readonly string[]): void {
    this.#pools.set(path, { session, labels, goneAt: undefined });
  }

  remove(path: string, at: number): void {
    const pool = this.#pools.get(path);
    if (pool !== undefined) pool.goneAt = at;
  }

  /** Whether the session has a pool for all of these labels, or had one until a moment ago. */
  serves(session: bigint, labels: readonly string[], at: number): boolean {
    return [...this.#pools.values()].some(
      (pool) =>
        pool.session === session &&
        (pool.goneAt === undefined || at - pool.goneAt <= UNDER_WAY_MS) &&
        labels.every((label) => pool.labels.includes(label)),
    );
  }
}
