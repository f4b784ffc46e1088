import type { Clock } from "@nodeyard/driver";

/** Errors by id. */
export type Refused = ReadonlyMap<string, unknown>;

/** How ids are sent in batches. */
export interface BatchOptions {
  readonly clock: Clock;
  /** Most ids of one call. */
  readonly most: number;
  /** Ids that are added within these milliseconds share a call. */
  readonly gatherMs: number;
  /** Resolves to errors by id, for ids that the service refused. Rejects when the call failed as a whole. */
  readonly send: (ids: readonly string[]) => Promise<Refused>;
  /** Whether a whole call may have failed because of one id. Then the other ids are sent again without it. */
  readonly isOfOne: (error: unknown) => boolean;
}

/**
 * Collects ids for calls that take many. Deletions of machines often come together, and each call costs a turn at the rate limit. The result
 * resolves when the service accepted the call with the id, and rejects with the id's own error. It has no signal: a caller that gives up leaves
 * its id in the call, which is harmless for a deletion.
 */
export function batched({
  clock,
  most,
  gatherMs,
  send,
  isOfOne,
}: BatchOptions): (id: string) => Promise<void> {
  let next: { readonly ids: Set<string>; readonly refused: Promise<Refused>; flush(): void } | undefined;

  /** Never rejects. */
  const sent = async (ids: readonly string[]): Promise<Refused> => {
    try {
      return await send(ids);
    } catch (error) {
      if (ids.length === 1 || !isOfOne(error)) return new Map(ids.map((id) => [id, error]));
      // One id makes the call fail for all. Halving finds it in few calls.
      const middle = Math.ceil(ids.length / 2);
      const halves = await Promise.all([sent(ids.slice(0, middle)), sent(ids.slice(middle))]);
      return new Map(halves.flatMap((errors) => [...errors]));
    }
  };

  const gathering = () => {
    const ids = new Set<string>();
    const { promise, resolve } = Promise.withResolvers<Refused>();
    const flush = () => {
      timer.cancel();
      next = undefined;
      resolve(sent([...ids]));
    };
    const timer = clock.setTimer(gatherMs, flush);
    return { ids, refused: promise, flush };
  };

  return async (id) => {
    next ??= gathering();
    const { ids, refused, flush } = next;
    if (ids.add(id).size >= most) flush();
    const errors = await refused;
    if (errors.has(id)) throw errors.get(id);
  };
}
