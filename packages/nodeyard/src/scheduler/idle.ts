interface Place {
  readonly pool: string;
  readonly labels: readonly string[];
  readonly zone: string | null;
}

/** Ready, free, unlocked nodes: by pool and label, oldest id first; and how many of each label there are anywhere. */
export class Idle {
  readonly #byPoolLabel = new Map<string, string[]>();
  readonly #byPool = new Map<string, string[]>();
  readonly #labelCount = new Map<string, number>();
  readonly #byZone = new Map<string, string[]>();
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
      this.#labelCount.set(label, this.count(label) - 1);
    }
    return where;
  }

  /** Idle nodes of a label over all pools, other launchers' included. */
  count(label: string): number {
    return this.#labelCount.get(label) ?? 0;
  }

  /** Ids of one pool and label, oldest first. Live: not to be kept over a change. */
  of(pool: string, label: string): readonly string[] {
    return this.#byPoolLabel.get(`${pool} ${label}`) ?? none;
  }

  /** Those of them that are in a zone. */
  inZone(pool: string, label: string, zone: string): readonly string[] {
    return this.#byZone.get(`${pool} ${label} ${zone}`) ?? none;
  }

  /** All idle ids of a pool, oldest first. */
  ofPool(pool: string): readonly string[] {
    return this.#byPool.get(pool) ?? none;
  }
}

const none: readonly string[] = [];

function insert(lists: Map<string, string[]>, key: string, id: string): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [id]);
  else list.splice(position(list, id), 0, id);
}

function removeFrom(lists: Map<string, string[]>, key: string, id: string): void {
  const list = lists.get(key);
  if (list === undefined) return;
  const index = position(list, id);
  if (list[index] !== id) return;
  if (index === 0) list.shift();
  else list.splice(index, 1);
  if (list.length === 0) lists.delete(key);
}

function position(list: readonly string[], id: string): number {
  let low = 0;
  let high = list.length;
  if (high > 0 && list[high - 1]! < id) return high;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (list[middle]! < id) low = middle + 1;
    else high = middle;
  }
  return low;
}
