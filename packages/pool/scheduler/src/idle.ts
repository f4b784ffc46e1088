import { compareText } from "@nodeyard/runtime";
import { type Queue, SortedQueues } from "./sorted-queues.ts";

/** Where an idle node is listed. Its record may say something else by the time it leaves, so this is kept. */
interface Place {
  readonly pool: string;
  readonly labels: readonly string[];
  readonly zone: string | null;
}

/** Ids in order. */
type Ids = Pick<Queue<string>, "size" | "find" | typeof Symbol.iterator>;

/** Ready, free, unlocked nodes: by pool and label, oldest id first; and how many of each label there are anywhere. */
export class Idle {
  readonly #byPoolLabel = new SortedQueues<string>(compareText);
  readonly #byPool = new SortedQueues<string>(compareText);
  readonly #labelCount = new Map<string, number>();
  /** By pool, label and zone; nodes without a zone are not in it. */
  readonly #byZone = new SortedQueues<string>(compareText);
  readonly #where = new Map<string, Place>();

  has(id: string): boolean {
    return this.#where.has(id);
  }

  /** A node that is listed already stays where it is. */
  add(id: string, pool: string, labels: readonly string[], zone: string | null = null): void {
    if (this.#where.has(id)) return;
    const unique = [...new Set(labels)];
    this.#where.set(id, { pool, labels: unique, zone });
    this.#byPool.add(pool, id);
    for (const label of unique) {
      this.#byPoolLabel.add(`${pool} ${label}`, id);
      if (zone !== null) this.#byZone.add(`${pool} ${label} ${zone}`, id);
      this.#labelCount.set(label, this.count(label) + 1);
    }
  }

  /** Removes a node and returns its pool and labels; undefined when it was not there. */
  remove(id: string): Place | undefined {
    const where = this.#where.get(id);
    if (where === undefined) return undefined;
    this.#where.delete(id);
    this.#byPool.delete(where.pool, id);
    for (const label of where.labels) {
      this.#byPoolLabel.delete(`${where.pool} ${label}`, id);
      if (where.zone !== null) this.#byZone.delete(`${where.pool} ${label} ${where.zone}`, id);
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

  /** Ids of one pool and label, oldest first. The result changes with the index, so do not keep it. */
  of(pool: string, label: string): Ids {
    return this.#byPoolLabel.of(`${pool} ${label}`);
  }

  /** Those of them that are in a zone. */
  inZone(pool: string, label: string, zone: string): Ids {
    return this.#byZone.of(`${pool} ${label} ${zone}`);
  }

  /** All idle ids of a pool, oldest first. */
  ofPool(pool: string): Ids {
    return this.#byPool.of(pool);
  }
}
