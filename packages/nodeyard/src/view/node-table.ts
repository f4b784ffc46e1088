import { decodeNode, type NodeRecord } from "@nodeyard/model";
import type { NodeEntry, ViewEvent } from "./entries.ts";
import { MultiIndex } from "./multi-index.ts";

/** Key of one pool in indexes and sums. */
export function poolKey(provider: string | null, pool: string | null): string {
  return `${provider ?? ""}/${pool ?? ""}`;
}

/** Nodes and their locks, with indexes. Lock contenders are kept apart, so that they may come before the record. */
export class NodeTable {
  readonly byId = new Map<string, NodeEntry>();
  readonly byState = new MultiIndex();
  readonly byProvider = new MultiIndex();
  readonly byPool = new MultiIndex();
  readonly byLabel = new MultiIndex();
  /** By the request that a node is allocated to. */
  readonly byRequest = new MultiIndex();
  /** Under "locked": every node with a contender. */
  readonly byLock = new MultiIndex();
  /** Paths without data: left behind by a locker that came too late. */
  readonly ghosts = new Set<string>();
  readonly #contenders = new Map<string, readonly string[]>();

  /**
   * Takes a record's bytes. Throws a RecordError for one that makes no sense; the caller decides what is left of the
   * older version.
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

  remove(id: string): ViewEvent | undefined {
    this.ghosts.delete(id);
    const before = this.byId.get(id);
    if (before === undefined) return undefined;
    this.byId.delete(id);
    this.#index(before, "delete");
    return { type: "node", id, before };
  }

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
    if (before === undefined) this.#index(after, "add");
    else if (before.record !== after.record || before.contenders.length !== after.contenders.length) {
      this.#index(before, "delete");
      this.#index(after, "add");
    }
    return { type: "node", id: after.id, before, after };
  }

  #index(entry: NodeEntry, how: "add" | "delete"): void {
    const record: NodeRecord = entry.record;
    this.byState[how](record.state, entry.id);
    this.byProvider[how](record.provider ?? "", entry.id);
    this.byPool[how](poolKey(record.provider, record.pool), entry.id);
    for (const label of record.type) this.byLabel[how](label, entry.id);
    if (record.allocatedTo !== null) this.byRequest[how](record.allocatedTo, entry.id);
    if (entry.contenders.length > 0) this.byLock[how]("locked", entry.id);
  }
}

const noContenders: readonly string[] = [];
