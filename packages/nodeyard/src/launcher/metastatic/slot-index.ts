import {
  type BackingData,
  backingData,
  backingOwner,
  type SlotPlace,
  slotPlace,
} from "../../operations/index.ts";
import type { NodeEntry, UnreadableEntry, View, ViewEvent } from "../../view/index.ts";
import { Claims } from "./claims.ts";

/** A node that carries slots of this provider. */
export interface Backing {
  readonly id: string;
  readonly data: BackingData;
  readonly entry: NodeEntry;
}

/** A node of this provider, which has a slot or wants one. */
export interface EndNode {
  readonly id: string;
  readonly label: string;
  readonly place: SlotPlace | undefined;
  readonly entry: NodeEntry;
}

/** States of a node that wants a slot. */
const WANTS: ReadonlySet<string> = new Set(["init", "building"]);
/** States of a node that has the slot that its record names; in others only a claim says so. */
const HAS: ReadonlySet<string> = new Set(["testing", "ready", "in-use", "used", "hold"]);

/**
 * What one metastatic provider has, from the view: backing nodes, slots and who wants one. Kept up to date event by event, so
 * that choosing a slot costs nothing that grows with the tree.
 */
export class SlotIndex {
  readonly claims = new Claims((node) => this.#noteWanting(node));
  readonly backings = new Map<string, Backing>();
  readonly ends = new Map<string, EndNode>();
  /** Nodes that cannot be read: each may still carry slots, or have one. */
  readonly unreadable = new Set<string>();
  readonly #provider: string;
  readonly #owner: string;
  /** Nodes whose record says ours and whose lock does not, by the version that was looked at. */
  readonly #disowned = new Map<string, number>();
  readonly #byLabel = new Map<string, string[]>();
  readonly #wanting = new Map<string, Set<string>>();
  /** Nodes whose record names a backing node and that use it, with their slot. */
  readonly #placed = new Map<string, Map<string, number>>();

  constructor(provider: string) {
    this.#provider = provider;
    this.#owner = backingOwner(provider);
  }

  /** What the view knew before anyone listened. */
  seed(view: View): void {
    for (const [path, after] of view.unreadable.byPath) this.take({ type: "unreadable", path, after });
    for (const [path, after] of view.own) this.take({ type: "own", path, after });
    for (const [id, after] of view.nodes.byId) this.take({ type: "node", id, after });
  }

  /** True when the event concerns this provider, or a backing node that may be its own. */
  take(event: ViewEvent): boolean {
    if (event.type === "own") return this.claims.take(event) !== undefined;
    if (event.type === "unreadable") return this.#takeUnreadable(event.before ?? event.after, event.after);
    if (event.type !== "node") return false;
    const end = this.#takeEnd(event.id, event.after);
    return this.#takeBacking(event.id, event.after) || end;
  }

  /** Takes a node for none of ours until its record changes. */
  disown(id: string, version: number): void {
    const entry = this.backings.get(id)?.entry;
    if (entry?.version !== version) return;
    this.#takeBacking(id, undefined);
    this.#disowned.set(id, version);
  }

  /** Backing nodes of a label, oldest first. */
  ofLabel(label: string): readonly Backing[] {
    return (this.#byLabel.get(label) ?? []).map((id) => this.backings.get(id)!);
  }

  /** Nodes that are being launched and have no slot yet, whoever launches them. */
  wanting(label: string): number {
    return this.#wanting.get(label)?.size ?? 0;
  }

  /** Nodes that by their own record live on this backing node. */
  placedOn(backing: string): ReadonlyMap<string, number> {
    return this.#placed.get(backing) ?? nobody;
  }

  /** Whether anyone has, or by its record says to have, the slot. */
  occupied(backing: string, slot: number): boolean {
    if (this.claims.of(backing).has(String(slot))) return true;
    const placed = this.#placed.get(backing);
    if (placed === undefined) return false;
    for (const other of placed.values()) if (other === slot) return true;
    return false;
  }

  isEmpty(backing: string): boolean {
    return this.claims.of(backing).size === 0 && this.placedOn(backing).size === 0;
  }

  /** True: there may be something to do that had to wait. */
  #takeUnreadable(either: UnreadableEntry | undefined, after: UnreadableEntry | undefined): boolean {
    if (either?.kind !== "node") return false;
    if (after === undefined) this.unreadable.delete(either.id);
    else this.unreadable.add(either.id);
    return after === undefined;
  }

  #takeEnd(id: string, after: NodeEntry | undefined): boolean {
    const before = this.ends.get(id);
    if (before !== undefined) {
      this.ends.delete(id);
      this.#wanting.get(before.label)?.delete(id);
      drop(this.#placed, before.place?.backing, id);
    }
    if (after === undefined || after.record.provider !== this.#provider) return before !== undefined;
    const { record } = after;
    const end: EndNode = { id, label: record.type[0] ?? "", place: slotPlace(record), entry: after };
    this.ends.set(id, end);
    this.#noteWanting(id);
    if (HAS.has(record.state) && end.place !== undefined) {
      const { backing, slot } = end.place;
      this.#placed.set(backing, (this.#placed.get(backing) ?? new Map()).set(id, slot));
    }
    return true;
  }

  /** Between two attempts a record still names its former slot; its claim is gone. */
  #noteWanting(id: string): void {
    const end = this.ends.get(id);
    if (end === undefined) return;
    const wanting = this.#wanting.get(end.label) ?? new Set();
    this.#wanting.set(end.label, wanting);
    if (WANTS.has(end.entry.record.state) && this.claims.ofNode(id).length === 0) wanting.add(id);
    else wanting.delete(id);
  }

  #takeBacking(id: string, after: NodeEntry | undefined): boolean {
    const before = this.backings.get(id);
    const data = after === undefined ? undefined : backingData(after.record);
    if (this.#disowned.get(id) !== after?.version) this.#disowned.delete(id);
    const ours = after !== undefined && data?.owner === this.#owner && !this.#disowned.has(id);
    if (before !== undefined && (!ours || before.data.label !== data.label)) {
      this.backings.delete(id);
      const ids = this.#byLabel.get(before.data.label);
      if (ids !== undefined) ids.splice(ids.indexOf(id), 1);
    }
    if (!ours) return before !== undefined;
    if (!this.backings.has(id)) {
      const ids = this.#byLabel.get(data.label) ?? [];
      ids.push(id);
      ids.sort();
      this.#byLabel.set(data.label, ids);
    }
    this.backings.set(id, { id, data, entry: after });
    return true;
  }
}

const nobody: ReadonlyMap<string, number> = new Map();

function drop(map: Map<string, Map<string, number>>, key: string | undefined, id: string): void {
  if (key === undefined) return;
  const inner = map.get(key);
  inner?.delete(id);
  if (inner?.size === 0) map.delete(key);
}
