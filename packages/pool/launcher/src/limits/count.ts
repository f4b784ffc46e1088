import { add, type Resources } from "@nodeyard/driver";
import { decodeNode, type NodeFields, type NodeRecord, paths, readable, readableNode } from "@nodeyard/model";
import { orUndefined, type Tree } from "@nodeyard/tree";
import { mayBeOf, poolKey, poolOf } from "@nodeyard/view";
import { type ScopeKey, sumsOf } from "./holdings.ts";

type Known = Partial<NodeFields>;

/** What all nodes take of limits. Made from the view, or from records that were just read, and not changed after that. */
export class Count {
  readonly #sums: ReadonlyMap<ScopeKey, Resources>;
  readonly #unreadable: readonly Known[];

  /** `unreadable`: the known facts of nodes whose records cannot be read. */
  constructor(records: Iterable<NodeRecord>, unreadable: Iterable<Known>) {
    this.#sums = sumsOf(records);
    this.#unreadable = [...unreadable];
  }

  /** The amount of a scope that is certainly in use. */
  least(scope: ScopeKey): Resources {
    return this.#sums.get(scope) ?? {};
  }

  /** What nodes that cannot be read may take of a scope besides, as far as it is known; undefined: there are none. */
  more(scope: ScopeKey): Resources | undefined {
    const may = this.#unreadable.filter((known) => mayCount(known, scope));
    if (may.length === 0) return undefined;
    return may.reduce((sum: Resources, { resources }) => add(sum, { instances: 1, ...resources }), {});
  }

  /**
   * What a ledger should say that says `sum`. With unreadable nodes the answer depends on `sum`: the ledger is not lowered below it,
   * because they were counted when they were made.
   */
  rightFor(sum: Resources, scope: ScopeKey): Resources {
    const least = this.least(scope);
    if (this.more(scope) === undefined) return least;
    const names = [...Object.keys(sum), ...Object.keys(least)];
    return Object.fromEntries(names.map((name) => [name, Math.max(sum[name] ?? 0, least[name] ?? 0)]));
  }
}

/** Whether a node of which only `known` can be read may take of a scope. A member that cannot be read may be anything. */
function mayCount(known: Known, scope: ScopeKey): boolean {
  const space = scope.indexOf(" ");
  const [kind, name] = [scope.slice(0, space), scope.slice(space + 1)];
  if (kind === "provider") return mayBeOf(known, name);
  if (kind === "tenant") {
    const { tenantName, allocatedTo } = known;
    return allocatedTo !== null && (tenantName === undefined || tenantName === name);
  }
  const [provider] = poolOf(name);
  if (!mayBeOf(known, provider)) return false;
  return typeof known.pool !== "string" || poolKey(provider, known.pool) === name;
}

/** Ids of all node records, read from the tree itself: the view may be behind. */
export async function nodeIds(tree: Tree): Promise<readonly string[]> {
  return (await orUndefined(tree.children(paths.nodes))) ?? [];
}

/** What the records of these ids take. All of them are asked for before this returns, so that the reads stay together. */
export async function countRecords(tree: Tree, ids: Iterable<string>): Promise<Count> {
  const records: NodeRecord[] = [];
  const unreadable: Partial<NodeFields>[] = [];
  await Promise.all(
    [...ids].map(async (id) => {
      const found = await orUndefined(tree.get(paths.node(id)));
      // A path that never had data is left by a locker that came too late.
      if (found === undefined || (found.data.length === 0 && found.stat.version === 0)) return;
      const record = readable(() => decodeNode(id, found.data));
      if (record === undefined) unreadable.push(readableNode(found.data));
      else records.push(record);
    }),
  );
  return new Count(records, unreadable);
}
