import type { ComponentEntry } from "@nodeyard/view";
import type { AbsentOffers } from "./absent-offers.ts";
import type { RegisteredPool } from "./types.ts";

/** What a registration changed: who offers what, or only which of them goes first. */
export type RegistryChange = "offer" | "standing";

/** The pools that are registered in the tree. Which of them offer a set of labels is remembered until it changes. */
export class Registry {
  readonly #pools = new Map<string, RegisteredPool>();
  readonly #builders = new Set<string>();
  /** By labels; emptied at each change, and before it grows without end. */
  readonly #offering = new Map<string, readonly RegisteredPool[]>();

  /** Undefined when it changed nothing that a decision depends on. `absent` is told which offer is gone, at this steady time. */
  set(
    key: string,
    entry: ComponentEntry | undefined,
    absent: AbsentOffers,
    steady: number,
  ): RegistryChange | undefined {
    if (entry?.kind === "builder" || this.#builders.has(key)) return this.#setBuilder(key, entry);
    // Components of processes say nothing of pools.
    if (entry !== undefined && entry.kind !== "pool") return undefined;
    const before = this.#pools.get(key);
    const record = entry?.record;
    let change: RegistryChange = "offer";
    // Without an id a pool can neither decline nor be yielded to.
    if (record === undefined || record.id === null) {
      if (before === undefined) return undefined;
      this.#pools.delete(key);
      absent.left(key, before, steady);
    } else {
      const after: RegisteredPool = {
        key,
        id: record.id,
        provider: record.providerName ?? "",
        labels: new Set(record.supportedLabels),
        priority: record.priority,
        paused: record.paused,
      };
      if (before !== undefined && sameOffer(before, after)) {
        if (before.priority === after.priority && before.paused === after.paused) return undefined;
        change = "standing";
      } else if (before !== undefined) absent.left(key, before, steady);
      this.#pools.set(key, after);
    }
    this.#offering.clear();
    return change;
  }

  /** Builders that are registered: any of them may make an image. */
  get builders(): number {
    return this.#builders.size;
  }

  #setBuilder(key: string, entry: ComponentEntry | undefined): RegistryChange | undefined {
    const before = this.#builders.size;
    if (entry === undefined) this.#builders.delete(key);
    else this.#builders.add(key);
    return this.#builders.size === before ? undefined : "offer";
  }

  /** Number of registered pools. */
  get size(): number {
    return this.#pools.size;
  }

  /** Launcher-pool ids, as they stand in `declined_by`. */
  ids(): readonly string[] {
    return [...this.#pools.values()].map((pool) => pool.id);
  }

  /** How many pools that offer `label` were registered before the first of `own`. */
  rankOf(label: string, own: ReadonlySet<string>): number {
    const offering = this.candidates([label], []);
    const first = offering
      .filter(({ id }) => own.has(id))
      .map(orderOf)
      .sort()[0];
    if (first === undefined) return offering.length;
    return offering.filter((pool) => !own.has(pool.id) && orderOf(pool) < first).length;
  }

  /** Pools that offer all `labels` and have not declined (docs/contract/launcher.md, "Which pool takes a request", point 3). */
  candidates(labels: readonly string[], declinedBy: readonly string[]): readonly RegisteredPool[] {
    const key = labels.length === 1 ? labels[0]! : [...new Set(labels)].sort().join("\n");
    let offering = this.#offering.get(key);
    if (offering === undefined) {
      offering = [...this.#pools.values()].filter((pool) => labels.every((label) => pool.labels.has(label)));
      if (this.#offering.size > 10_000) this.#offering.clear();
      this.#offering.set(key, offering);
    }
    return declinedBy.length === 0 ? offering : offering.filter((pool) => !declinedBy.includes(pool.id));
  }

  /** Whether every registered pool has declined (docs/contract/launcher.md, "Declining"). */
  allDeclined(declinedBy: readonly string[]): boolean {
    if (this.#pools.size === 0) return false;
    for (const pool of this.#pools.values()) if (!declinedBy.includes(pool.id)) return false;
    return true;
  }
}

/** Znodes of one kind are numbered as they come (docs/contract/records.md, "Component"): `pool/<host><ten digits>`. */
function orderOf({ key }: RegisteredPool): string {
  return `${key.slice(-10)} ${key}`;
}

function sameOffer(a: RegisteredPool, b: RegisteredPool): boolean {
  return (
    a.id === b.id &&
    a.provider === b.provider &&
    a.labels.size === b.labels.size &&
    [...a.labels].every((label) => b.labels.has(label))
  );
}
