import { add, exceeded, type Resources, subtract } from "@nodeyard/driver";
import { Heap, type Random } from "@nodeyard/runtime";

/** What comes back at a time, milliseconds from now. */
export interface Return {
  readonly at: number;
  readonly amount: Resources;
}

/** One that gets its nodes when there is room for them. */
export interface Turn {
  readonly need: Resources;
  /** Pools in which it waits; one of them serves it. */
  readonly pools: number;
  /** It gets its room: when it has its nodes, and what comes back when. */
  begin(random: Random, at: number): { readonly ready: number; readonly returns: readonly Return[] };
}

/** A pool with those that have nodes, and those that come next. */
export interface Course {
  readonly limit: Resources;
  readonly used: Resources;
  /** What each of those who have nodes now gives back. */
  readonly holders: readonly ((random: Random) => readonly Return[])[];
  /** In order; the last is the one that is asked about. */
  readonly turns: readonly Turn[];
}

/** Plays one possible course. Returns after how many milliseconds the last turn has its nodes; Infinity: never. */
export function play({ limit, used, holders, turns }: Course, random: Random): number {
  const coming = new Heap<Return>((a, b) => a.at - b.at);
  for (const holder of holders) for (const each of holder(random)) coming.push(each);
  let taken = used;
  let at = 0;
  for (const turn of turns) {
    const last = turn === turns.at(-1);
    if (!last && turn.pools > 1 && random.float() * turn.pools > 1) continue;
    while (exceeded(limit, taken, turn.need) !== undefined) {
      const next = coming.pop();
      if (next === undefined || next.at === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY;
      at = Math.max(at, next.at);
      taken = subtract(taken, next.amount);
    }
    taken = add(taken, turn.need);
    const { ready, returns } = turn.begin(random, at);
    if (last) return ready;
    for (const each of returns) coming.push(each);
  }
  return at;
}
