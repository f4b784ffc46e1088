import type { Kind } from "./rows.ts";
import type { Table } from "./table.ts";

type Tables = Readonly<Record<Kind, Pick<Table<unknown>, "apply" | "entries">>>;

/**
 * What the stream of events says, gathered until `flush`: the last state of each id counts. While everything is sent again, what was not
 * named by its end is gone.
 */
export class Feed {
  readonly #tables: Tables;
  readonly #pending = new Map<Kind, Map<string, unknown>>();
  /** Ids that were named since everything began to be sent; undefined: only changes come. */
  #named: Map<Kind, Set<string>> | undefined;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Whether everything is being sent, and is not complete yet. */
  get resyncing(): boolean {
    return this.#named !== undefined;
  }

  /** Whether a row is known not to be gone. */
  isNamed(kind: Kind, id: string): boolean {
    return this.#named === undefined || this.#named.get(kind)?.has(id) === true;
  }

  /** Everything there is follows, up to `synced`. */
  begin(): void {
    this.#named = new Map();
  }

  put(kind: Kind, id: string, row: unknown): void {
    if (this.#named !== undefined) groupOf(this.#named, kind, () => new Set<string>()).add(id);
    groupOf(this.#pending, kind, () => new Map<string, unknown>()).set(id, row);
  }

  remove(kind: Kind, id: string): void {
    this.#named?.get(kind)?.delete(id);
    groupOf(this.#pending, kind, () => new Map<string, unknown>()).set(id, undefined);
  }

  synced(): void {
    const named = this.#named;
    this.#named = undefined;
    if (named === undefined) return;
    for (const [kind, table] of Object.entries(this.#tables) as [Kind, Tables[Kind]][])
      for (const [id] of table.entries()) if (named.get(kind)?.has(id) !== true) this.remove(kind, id);
  }

  /** Shows what was gathered. */
  flush(): void {
    for (const [kind, states] of this.#pending) this.#tables[kind]?.apply(states);
    this.#pending.clear();
  }
}

function groupOf<K, V>(groups: Map<K, V>, key: K, make: () => V): V {
  const known = groups.get(key);
  if (known !== undefined) return known;
  const made = make();
  groups.set(key, made);
  return made;
}
