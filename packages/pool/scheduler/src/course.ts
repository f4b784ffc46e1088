import { Heap, type Random } from "@nodeyard/runtime";

/** Amounts of the limited resources of a course, each at its place: a course is played so often that names would cost too much. */
export type Amounts = readonly number[];

/** What comes back at a time, milliseconds from now. */
export interface Return {
  readonly at: number;
  readonly amount: Amounts;
}

/** A request of the simulated course: it gets its nodes when there is room for them. */
export interface Queued {
  readonly need: Amounts;
  /** Pools in which it waits; one of them serves it. */
  readonly pools: number;
  /** Starts the request: when its nodes are ready, and when which amounts are free again. */
  begin(random: Random, at: number): { readonly ready: number; readonly returns: readonly Return[] };
}

/** A pool with those that have nodes, and those that come next. */
export interface Course {
  /** What is left now of each limit. */
  readonly free: Amounts;
  /** What each of those who have nodes now gives back. */
  readonly holders: readonly ((random: Random) => readonly Return[])[];
  /** In order; the last is the one that is asked about. */
  readonly queue: readonly Queued[];
}

/** Plays one possible course. Returns after how many milliseconds the last request has its nodes; Infinity: never. */
export function play({ free, holders, queue }: Course, random: Random): number {
  const coming = new Heap<Return>((a, b) => a.at - b.at);
  for (const holder of holders) for (const each of holder(random)) coming.push(each);
  const left = [...free];
  const last = queue.at(-1);
  let at = 0;
  for (const request of queue) {
    if (request !== last && request.pools > 1 && random.float() * request.pools > 1) continue;
    const { need } = request;
    while (need.some((amount, index) => amount > 0 && amount > left[index]!)) {
      const next = coming.pop();
      if (next === undefined || next.at === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY;
      at = Math.max(at, next.at);
      for (let index = 0; index < left.length; index++) left[index]! += next.amount[index]!;
    }
    for (let index = 0; index < left.length; index++) left[index]! -= need[index]!;
    const { ready, returns } = request.begin(random, at);
    if (request === last) return ready;
    for (const each of returns) coming.push(each);
  }
  return at;
}
