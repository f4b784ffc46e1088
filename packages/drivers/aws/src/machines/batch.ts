import { type Clock, wasRefused } from "@nodeyard/driver";

/** Errors by id. */
export type Refused = ReadonlyMap<string, unknown>;

/** Most ids in one call. Each call costs a turn at the rate limit. */
const MOST = 50;
/** Ids that come within these milliseconds share a call. */
const GATHER_MS = 200;

/**
 * Collects ids for calls that take many, since deletions of machines often come together. The result resolves when the service accepted the
 * call with the id, and rejects with the id's own error. It has no signal: a caller that gives up leaves its id in the call, which is harmless
 * for a deletion.
 *
 * `send` resolves to errors by id, for ids that the service refused, and rejects when the call failed as a whole. `ofOne`: codes with which it
 * may have failed because of one id; then the other ids are sent again without it.
 */
export function batched(
  clock: Clock,
  send: (ids: string[]) => Promise<Refused>,
  ofOne: RegExp,
): (id: string) => Promise<void> {
  let next: { readonly ids: Set<string>; readonly refused: Promise<Refused>; flush(): void } | undefined;

  /** Never rejects. */
  const sent = async (ids: string[]): Promise<Refused> => {
    try {
      return await send(ids);
    } catch (error) {
      if (ids.length === 1 || !wasRefused(error, ofOne)) return new Map(ids.map((id) => [id, error]));
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
    const timer = clock.setTimer(GATHER_MS, flush);
    return { ids, refused: promise, flush };
  };

  return async (id) => {
    next ??= gathering();
    const { ids, refused, flush } = next;
    if (ids.add(id).size >= MOST) flush();
    const errors = await refused;
    if (errors.has(id)) throw errors.get(id);
  };
}
