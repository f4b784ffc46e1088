import type { Kind } from "./rows.ts";
import type { Table } from "./table.ts";

type Tables = Readonly<Record<Kind, Pick<Table<unknown>, "apply" | "entries">>>;

/**
 * Collects events until `flush`; the last state of each id counts. While all rows are sent again, a row that was not sent before `synced`
 * no longer exists.
 */
export class Feed {
  readonly #tables: Tables;
  readonly #pending = new Map<Kind, Map<string, unknown>>();
  /** Ids that were sent since the last `begin`. Undefined: only changes are sent. */
  #named: Map<Kind, Set<string>> | undefined;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Whether all rows are being sent and `synced` has not arrived. */
  get resyncing(): boolean {
    return this.#named !== undefined;
  }

  /** Whether the row is known to exist. */
  isNamed(kind: Kind, id: string): boolean {
    return this.#named === undefined || this.#named.get(kind)?.has(id) === true;
  }

  /** To be called when all rows will be sent, up to `synced`. */
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

  /** Applies the collected events to the tables. */
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
