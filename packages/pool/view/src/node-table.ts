import { decodeNode, type NodeRecord } from "@nodeyard/model";
import type { NodeEntry, ViewEvent } from "./entries.ts";
import { MultiIndex } from "./multi-index.ts";

/** Key of one pool in indexes and sums, and its name for people; the first slash ends the provider's name, whatever that is. */
export function poolKey(provider: string | null, pool: string | null): string {
  return `${escaped(provider ?? "")}/${pool ?? ""}`;
}

/** The provider of a pool by its key, and the pool's own name. */
export function poolOf(key: string): readonly [provider: string, pool: string] {
  const slash = key.indexOf("/");
  return [decodeURIComponent(key.slice(0, slash)), key.slice(slash + 1)];
}

/** Names of providers are free text; those of pools come last in the key and need no escape. */
function escaped(name: string): string {
  return /[%/]/.test(name) ? name.replaceAll("%", "%25").replaceAll("/", "%2F") : name;
}

/** Nodes and their locks, with indexes. Lock contenders are kept apart, so that they may come before the record. */
export class NodeTable {
  readonly byId = new Map<string, NodeEntry>();
  /** Ids under the values of a member of the record; a node without a provider is under "". */
  readonly byState = new MultiIndex();
  readonly byProvider = new MultiIndex();
  /** Under `poolKey` of provider and pool. */
  readonly byPool = new MultiIndex();
  /** Under each of its labels. */
  readonly byLabel = new MultiIndex();
  /** By the request that a node is allocated to. */
  readonly byRequest = new MultiIndex();
  /** Under "locked": every node with a contender. */
  readonly byLock = new MultiIndex();
  /** Paths without data: left behind by a locker that came too late. */
  readonly ghosts = new Set<string>();
  /** By node id; also of nodes without a readable record. */
  readonly #contenders = new Map<string, readonly string[]>();

  /**
   * Takes a record's bytes. Throws a RecordError when it is unreadable; the caller decides what to keep of the older version.
   */
  put(id: string, data: Uint8Array, version: number): ViewEvent | undefined {
    if (data.length === 0) {
      const event = this.remove(id);
      this.ghosts.add(id);
      return event;
    }
    this.ghosts.delete(id);
    const record = decodeNode(id, data);
    return this.#replace({ id, record, version, contenders: this.#contenders.get(id) ?? noContenders });
  }

  /** Its contenders stay until each of them is reported gone. */
  remove(id: string): ViewEvent | undefined {
    this.ghosts.delete(id);
    const before = this.byId.get(id);
    if (before === undefined) return undefined;
    this.byId.delete(id);
    this.#index(id, before, undefined);
    return { type: "node", id, before };
  }

  /** Undefined when nothing changes, or the node has no record yet: its entry will have the contender. */
  putContender(id: string, name: string): ViewEvent | undefined {
    const now = this.#contenders.get(id) ?? noContenders;
    if (now.includes(name)) return undefined;
    return this.#setContenders(id, [...now, name]);
  }

  removeContender(id: string, name: string): ViewEvent | undefined {
    const now = this.#contenders.get(id);
    if (now?.includes(name) !== true) return undefined;
    return this.#setContenders(
      id,
      now.filter((other) => other !== name),
    );
  }

  #setContenders(id: string, contenders: readonly string[]): ViewEvent | undefined {
    if (contenders.length === 0) this.#contenders.delete(id);
    else this.#contenders.set(id, contenders);
    const entry = this.byId.get(id);
    return entry === undefined ? undefined : this.#replace({ ...entry, contenders });
  }

  #replace(after: NodeEntry): ViewEvent {
    const before = this.byId.get(after.id);
    this.byId.set(after.id, after);
    this.#index(after.id, before, after);
    return { type: "node", id: after.id, before, after };
  }

  /** Touches only the indexes whose key changes: most writes change the state alone. */
  #index(id: string, before: NodeEntry | undefined, after: NodeEntry | undefined): void {
    const [old, now] = [before?.record, after?.record];
    this.byState.move(id, old?.state, now?.state);
    this.byProvider.move(id, old && (old.provider ?? ""), now && (now.provider ?? ""));
    if (old === undefined || now === undefined || old.provider !== now.provider || old.pool !== now.pool) {
      this.byPool.move(id, old && poolKey(old.provider, old.pool), now && poolKey(now.provider, now.pool));
    }
    this.byRequest.move(id, old?.allocatedTo ?? undefined, now?.allocatedTo ?? undefined);
    this.byLock.move(id, lockKey(before), lockKey(after));
    if (sameLabels(old, now)) return;
    for (const label of old?.type ?? []) this.byLabel.delete(label, id);
    for (const label of now?.type ?? []) this.byLabel.add(label, id);
  }
}

function lockKey(entry: NodeEntry | undefined): string | undefined {
  return entry !== undefined && entry.contenders.length > 0 ? "locked" : undefined;
}

/** Most changes keep the same labels, and comparing them is cheaper than four changes of sets. */
function sameLabels(a: NodeRecord | undefined, b: NodeRecord | undefined): boolean {
  if (a?.type === b?.type) return true;
  return (
    a?.type.length === b?.type.length && a?.type.every((label, index) => label === b?.type[index]) === true
  );
}

const noContenders: readonly string[] = [];
