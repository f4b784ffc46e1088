import { SortedQueue } from "./sorted-queue.ts";

interface Place {
  readonly pool: string;
  readonly labels: readonly string[];
  readonly zone: string | null;
}

/** Ids in order. */
type Ids = Pick<SortedQueue<string>, "size" | "find" | typeof Symbol.iterator>;

/** Ready, free, unlocked nodes: by pool and label, oldest id first; and how many of each label there are anywhere. */
export class Idle {
  readonly #byPoolLabel = new Map<string, SortedQueue<string>>();
  readonly #byPool = new Map<string, SortedQueue<string>>();
  readonly #labelCount = new Map<string, number>();
  readonly #byZone = new Map<string, SortedQueue<string>>();
  readonly #where = new Map<string, Place>();

  has(id: string): boolean {
    return this.#where.has(id);
  }

  add(id: string, pool: string, labels: readonly string[], zone: string | null = null): void {
    if (this.#where.has(id)) return;
    const unique = [...new Set(labels)];
    this.#where.set(id, { pool, labels: unique, zone });
    insert(this.#byPool, pool, id);
    for (const label of unique) {
      insert(this.#byPoolLabel, `${pool} ${label}`, id);
      if (zone !== null) insert(this.#byZone, `${pool} ${label} ${zone}`, id);
      this.#labelCount.set(label, this.count(label) + 1);
    }
  }

  /** The pool and labels it stood under; undefined when it was not in. */
  remove(id: string): Place | undefined {
    const where = this.#where.get(id);
    if (where === undefined) return undefined;
    this.#where.delete(id);
    removeFrom(this.#byPool, where.pool, id);
    for (const label of where.labels) {
      removeFrom(this.#byPoolLabel, `${where.pool} ${label}`, id);
      if (where.zone !== null) removeFrom(this.#byZone, `${where.pool} ${label} ${where.zone}`, id);
      const left = this.count(label) - 1;
      if (left > 0) this.#labelCount.set(label, left);
      else this.#labelCount.delete(label);
    }
    return where;
  }

  /** Idle nodes of a label over all pools, other launchers' included. */
  count(label: string): number {
    return this.#labelCount.get(label) ?? 0;
  }

  /** Ids of one pool and label, oldest first. Live: not to be kept over a change. */
  of(pool: string, label: string): Ids {
    return this.#byPoolLabel.get(`${pool} ${label}`) ?? none;
  }

  /** Those of them that are in a zone. */
  inZone(pool: string, label: string, zone: string): Ids {
    return this.#byZone.get(`${pool} ${label} ${zone}`) ?? none;
  }

  /** All idle ids of a pool, oldest first. */
  ofPool(pool: string): Ids {
    return this.#byPool.get(pool) ?? none;
  }
}

const none: Ids = new SortedQueue(compareText);

function insert(lists: Map<string, SortedQueue<string>>, key: string, id: string): void {
  const list = lists.get(key);
  if (list !== undefined) list.add(id);
  else {
    const first = new SortedQueue(compareText);
    first.add(id);
    lists.set(key, first);
  }
}

function removeFrom(lists: Map<string, SortedQueue<string>>, key: string, id: string): void {
  const list = lists.get(key);
  if (list?.delete(id) === true && list.size === 0) lists.delete(key);
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
