import type { NodeFields } from "@nodeyard/model";
import type { UnreadableEntry, ViewEvent } from "./entries.ts";

/**
 * Records that cannot be read. They exist: what decides by the absence of a record (leak sweeps, registration of hosts, the
 * removal of old locks, counts against limits) asks here, too (docs/design/unreadable-records.md).
 */
export class UnreadableTable {
  readonly byPath = new Map<string, UnreadableEntry>();
  /** By id of the node. */
  readonly nodes = new Map<string, UnreadableEntry>();

  /** Also for a record that was unreadable before, whose data changed. */
  put(after: UnreadableEntry): ViewEvent {
    const before = this.byPath.get(after.path);
    this.byPath.set(after.path, after);
    if (after.kind === "node") this.nodes.set(after.id, after);
    return { type: "unreadable", path: after.path, before, after };
  }

  /** The record can be read again, or is gone. Undefined: it was readable. */
  remove(path: string): ViewEvent | undefined {
    const before = this.byPath.get(path);
    if (before === undefined) return undefined;
    this.byPath.delete(path);
    if (before.kind === "node") this.nodes.delete(before.id);
    return { type: "unreadable", path, before };
  }

  has(path: string): boolean {
    return this.byPath.has(path);
  }

  /** Nodes that may be of a provider. */
  ofProvider(provider: string): readonly UnreadableEntry[] {
    return [...this.nodes.values()].filter(({ known }) => mayBeOf(known, provider));
  }
}

/** Whether an unreadable node may belong to a provider: to the one that it names, otherwise to any. */
export function mayBeOf({ provider }: Partial<NodeFields>, name: string): boolean {
  return typeof provider === "string" ? provider === name : true;
}
