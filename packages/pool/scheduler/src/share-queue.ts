import { compareRequests, parseRequestId } from "@nodeyard/model";
import { compareText } from "@nodeyard/runtime";
import { keysOf, type Shares, sharerOf } from "./shares.ts";
import { firstOf, SortedQueue } from "./sorted-queue.ts";
import type { Waiting } from "./waits.ts";

/** The requests of one tenant, or of one client of it, with its load when it was last placed. */
interface Part {
  readonly key: string;
  readonly members: Members;
  load: number;
  first: Waiting;
}

interface Members {
  readonly first: Waiting | undefined;
  add(waiting: Waiting): boolean;
  delete(waiting: Waiting): boolean;
  /** In turn, at most `each` of each client. Others may come and go meanwhile. */
  inTurn(each: number): Generator<Waiting>;
}

/** The requests of a client, by age. */
class Line implements Members {
  readonly #queue = new SortedQueue<Waiting>(compareRequests);

  get first(): Waiting | undefined {
    return this.#queue.at(0);
  }

  add(waiting: Waiting): boolean {
    return this.#queue.add(waiting);
  }

  delete(waiting: Waiting): boolean {
    return this.#queue.delete(waiting);
  }

  *inTurn(each: number): Generator<Waiting> {
    yield* firstOf(this.#queue, each);
  }
}

/** Those with the smallest load first; of equal ones that with the oldest request. Two levels: tenants, and the clients of a tenant. */
class Parts implements Members {
  readonly #shares: Shares;
  readonly #level: 0 | 1;
  readonly #parts = new Map<string, Part>();
  readonly #order = new SortedQueue<Part>((a, b) => a.load - b.load || compareRequests(a.first, b.first));
  #seen: number;

  constructor(shares: Shares, level: 0 | 1) {
    this.#shares = shares;
    this.#level = level;
    this.#seen = shares.moment;
  }

  get first(): Waiting | undefined {
    this.#catchUp();
    return this.#order.at(0)?.first;
  }

  add(waiting: Waiting): boolean {
    const key = keysOf(sharerOf(waiting.record))[this.#level];
    const known = this.#parts.get(key);
    const members = known?.members ?? (this.#level === 0 ? new Parts(this.#shares, 1) : new Line());
    if (!members.add(waiting)) return false;
    const part = known ?? { key, members, load: 0, first: waiting };
    this.#parts.set(key, part);
    this.#place(part);
    return true;
  }

  delete(waiting: Waiting): boolean {
    const key = keysOf(sharerOf(waiting.record))[this.#level];
    const part = this.#parts.get(key);
    if (part?.members.delete(waiting) !== true) return false;
    this.#place(part);
    return true;
  }

  /** Loads count as they are: who was given something meanwhile waits until it is their turn again. */
  *inTurn(each: number): Generator<Waiting> {
    this.#catchUp();
    const left = [...this.#order].map(({ key, members, load }) => ({
      key,
      load,
      members: members.inTurn(each),
    }));
    for (let { moment } = this.#shares; left.length > 0; ) {
      if (moment !== this.#shares.moment) for (const one of left) one.load = this.#shares.load(one.key);
      moment = this.#shares.moment;
      let least = 0;
      for (let index = 1; index < left.length; index++)
        if (left[index]!.load < left[least]!.load) least = index;
      const { done, value } = left[least]!.members.next();
      if (done) left.splice(least, 1);
      else yield value;
    }
  }

  /** Work for what changed since the last look, not for what waits. */
  #catchUp(): void {
    const keys = this.#shares.changedSince(this.#seen) ?? [...this.#parts.keys()];
    this.#seen = this.#shares.moment;
    for (const key of keys) {
      const part = this.#parts.get(key);
      if (part !== undefined) this.#place(part);
    }
  }

  #place(part: Part): void {
    this.#order.delete(part);
    const { first } = part.members;
    if (first === undefined) return void this.#parts.delete(part.key);
    part.first = first;
    part.load = this.#shares.load(part.key);
    this.#order.add(part);
  }
}

/** Requests of one priority and relative priority, which shares never override. */
interface Rank {
  readonly priority: string;
  readonly relative: number;
  readonly parts: Parts;
  /** Goes first until it leaves. */
  pinned: Waiting | undefined;
  size: number;
}

/**
 * A queue in which requests of the same priority and relative priority stand in the order of their shares. That order changes with every
 * node that somebody gets or returns. A request that is pinned stays the first of its priority until it leaves: what is kept for it would
 * otherwise go to others again and again.
 */
export class ShareQueue {
  readonly #shares: Shares;
  readonly #ranks = new Map<string, Rank>();
  readonly #order = new SortedQueue<Rank>(compareRanks);

  constructor(shares: Shares) {
    this.#shares = shares;
  }

  get first(): Waiting | undefined {
    const best = this.#order.at(0);
    return best?.pinned ?? best?.parts.first;
  }

  /** Something is kept for a request of this queue. */
  pin(waiting: Waiting): void {
    const rank = this.#ranks.get(rankKey(waiting));
    if (rank !== undefined) rank.pinned ??= waiting;
  }

  add(waiting: Waiting): void {
    const key = rankKey(waiting);
    let rank = this.#ranks.get(key);
    if (rank === undefined) {
      rank = { ...rankOf(waiting), parts: new Parts(this.#shares, 0), pinned: undefined, size: 0 };
      this.#ranks.set(key, rank);
      this.#order.add(rank);
    }
    if (rank.parts.add(waiting)) rank.size++;
  }

  delete(waiting: Waiting): void {
    const key = rankKey(waiting);
    const rank = this.#ranks.get(key);
    if (rank === undefined || !rank.parts.delete(waiting)) return;
    if (rank.pinned?.id === waiting.id) rank.pinned = undefined;
    if (--rank.size > 0) return;
    this.#ranks.delete(key);
    this.#order.delete(rank);
  }

  /** The first `most`; of each client at most `each` of one rank, so that those of one client whom nothing fits do not hide the others. */
  *inTurn(each: number, most: number): Generator<Waiting> {
    let left = most;
    for (const { parts } of [...this.#order])
      for (const waiting of parts.inTurn(each)) {
        if (left-- <= 0) return;
        yield waiting;
      }
  }
}

/** The part of the order of requests that shares do not touch. */
export function compareRank(a: Waiting, b: Waiting): number {
  return compareRanks(rankOf(a), rankOf(b));
}

function rankOf({ id, relativePriority }: Waiting): RankOrder {
  return { priority: parseRequestId(id)?.priority ?? "", relative: relativePriority };
}

/** For maps: requests of one rank have the same. */
export function rankKey(waiting: Waiting): string {
  const { priority, relative } = rankOf(waiting);
  return `${priority} ${relative}`;
}

type RankOrder = Pick<Rank, "priority" | "relative">;

function compareRanks(a: RankOrder, b: RankOrder): number {
  return compareText(a.priority, b.priority) || a.relative - b.relative;
}
