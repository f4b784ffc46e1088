import {
  type BackingData,
  backingData,
  decodeClaim,
  folderProvider,
  metastaticProviderOf,
  type SlotPlace,
  slotPlace,
  slotsPath,
  spareName,
} from "@nodeyard/model";
import type { BackingFacts, NodeEntry, ViewEvent } from "./entries.ts";
import { MultiIndex } from "./multi-index.ts";

/** A node that carries slots of a metastatic provider, by its own record. */
export interface Backing {
  readonly id: string;
  readonly provider: string;
  /** Its `user_data`: label and number of slots, owner, and whether it failed. */
  readonly data: BackingData;
  readonly entry: NodeEntry;
}

/** A znode that says which node has a slot. */
export interface SlotClaim {
  /** Of the claim's znode, `/nodeyard/slots/<backing node>/<name>`. */
  readonly path: string;
  readonly backing: string;
  /** The slot's number, or `spareName` of its node. */
  readonly name: string;
  /** Null: the claim is unreadable. It still occupies its slot. */
  readonly node: string | null;
}

/** States of a node that wants a slot. */
const WANTS: ReadonlySet<string> = new Set(["init", "building"]);
/** States of a node that has the slot that its record names; in others only a claim says so. */
const HAS: ReadonlySet<string> = new Set(["testing", "ready", "in-use", "used", "hold"]);

const NONE: readonly string[] = [];

/** Backing nodes, their slots, the nodes in them and the launches that want one; updated by each event. */
export class SlotTable {
  readonly backings = new Map<string, Backing>();
  /** Providers by backing node, as its slots folder names them: it takes slots only while the folder stands. */
  readonly folders = new Map<string, string | null>();
  /** Backing nodes with a request to retire them. */
  readonly retired = new Set<string>();
  /** Backing nodes by the provider of their slots. */
  readonly byProvider = new MultiIndex();
  /** Launches without a slot, by provider and label. */
  readonly #wanting = new MultiIndex();
  /** All nodes by id, since a claim may come before or after the node that it names. */
  readonly #nodes = new Map<string, NodeEntry>();
  /** By backing node, then by the claim's name. */
  readonly #claims = new Map<string, Map<string, SlotClaim>>();
  /** By the node that claims. */
  readonly #claimsOf = new Map<string, Set<SlotClaim>>();
  /** Nodes whose record names a backing node and that use it, with their slot. */
  readonly #placed = new Map<string, Map<string, number>>();

  /**
   * Takes what changed, and returns the ids of the backing nodes whose facts it may have changed. The view calls it before its
   * listeners, so that these find the table up to date. Costs as much as the change, not as the tree.
   */
  take(event: ViewEvent): readonly string[] {
    if (event.type === "node") return this.#takeNode(event.id, event.before, event.after);
    if (event.type !== "own") return [];
    const place = slotsPath(event.path);
    if (place === undefined) return [];
    const { backing } = place;
    if (place.kind === "folder") {
      if (event.after === undefined) this.folders.delete(backing);
      else this.folders.set(backing, folderProvider(event.after.data));
    } else if (place.kind === "retired") {
      if (event.after === undefined) this.retired.delete(backing);
      else this.retired.add(backing);
    } else {
      const node = event.after === undefined ? undefined : decodeClaim(event.after.data);
      this.#putClaim(
        backing,
        place.name,
        node === undefined ? undefined : { path: event.path, backing, name: place.name, node },
      );
    }
    return this.backings.has(backing) ? [backing] : [];
  }

  /** By name; unreadable ones included. */
  claimsOn(backing: string): ReadonlyMap<string, SlotClaim> {
    return this.#claims.get(backing) ?? noClaims;
  }

  /** One in the usual case. More mean that a launch was interrupted between two attempts, or another program wrote. */
  claimsOf(node: string): readonly SlotClaim[] {
    return [...(this.#claimsOf.get(node) ?? [])];
  }

  /** Nodes that by their own record live on this backing node, with their slots. */
  placedOn(backing: string): ReadonlyMap<string, number> {
    return this.#placed.get(backing) ?? nobody;
  }

  /** Nodes of a provider and label that a launcher is launching and that have no slot yet. */
  wanting(provider: string, label: string): number {
    return this.#wanting.count(lineKey(provider, label));
  }

  /** Whether nothing says that one of its slots is taken: neither a claim nor a record. */
  isEmpty(backing: string): boolean {
    return this.claimsOn(backing).size === 0 && this.placedOn(backing).size === 0;
  }

  /** What choosing a slot needs to know; undefined: it is no backing node. */
  facts(id: string): BackingFacts | undefined {
    const backing = this.backings.get(id);
    if (backing === undefined) return undefined;
    const { provider, data, entry } = backing;
    // A slot counts as taken when a claim or a record says so.
    const taken = new Set(this.placedOn(id).values());
    for (const name of this.claimsOn(id).keys()) if (/^\d+$/.test(name)) taken.add(Number(name));
    return {
      id,
      provider,
      label: data.label,
      slots: data.slots,
      launched: data.launched,
      version: entry.version,
      inUse: entry.record.state === "in-use",
      // Its folder is made once its lock was seen to be ours: a record that only says so takes nothing.
      open: entry.contenders.length > 0 && this.folders.has(id),
      ended: data.failed ? "it has failed" : this.retired.has(id) ? "it is retired" : undefined,
      taken,
    };
  }

  #takeNode(id: string, before: NodeEntry | undefined, after: NodeEntry | undefined): readonly string[] {
    const [was, is] = [placeOf(before), placeOf(after)];
    if (was !== undefined && was.backing !== is?.backing) this.#leave(id, was.backing);
    if (is !== undefined)
      this.#placed.set(is.backing, (this.#placed.get(is.backing) ?? new Map()).set(id, is.slot));
    if (after === undefined) this.#nodes.delete(id);
    else this.#nodes.set(id, after);
    this.#noteWanting(id, before, after);
    const carries = this.#takeBacking(id, after);
    const isMoved = was?.backing !== is?.backing || was?.slot !== is?.slot;
    // Most nodes have to do with no slot.
    if (!isMoved) return carries ? [id] : NONE;
    const touched = new Set([was, is].flatMap((place) => place?.backing ?? []));
    return [
      ...[...touched].filter((backing) => backing !== id && this.backings.has(backing)),
      ...(carries ? [id] : []),
    ];
  }

  /** True when the node carries slots, or did. */
  #takeBacking(id: string, entry: NodeEntry | undefined): boolean {
    const before = this.backings.get(id);
    const data = entry === undefined ? undefined : backingData(entry.record);
    const provider = data === undefined ? undefined : metastaticProviderOf(data.owner);
    this.byProvider.move(id, before?.provider, provider);
    if (entry === undefined || data === undefined || provider === undefined) return this.backings.delete(id);
    this.backings.set(id, { id, provider, data, entry });
    return true;
  }

  /** Empty maps go, or each backing node that ever was would leave one. */
  #leave(node: string, backing: string): void {
    const placed = this.#placed.get(backing);
    placed?.delete(node);
    if (placed?.size === 0) this.#placed.delete(backing);
  }

  /** Between two attempts a record still names its former slot; its claim is gone. */
  #noteWanting(id: string, before: NodeEntry | undefined, after: NodeEntry | undefined): void {
    const wants = after !== undefined && WANTS.has(after.record.state) && !this.#claimsOf.has(id);
    if (before !== undefined && WANTS.has(before.record.state)) this.#wanting.delete(wantKey(before), id);
    if (wants) this.#wanting.add(wantKey(after), id);
  }

  #putClaim(backing: string, name: string, claim: SlotClaim | undefined): void {
    const claims = this.#claims.get(backing) ?? new Map<string, SlotClaim>();
    const before = claims.get(name);
    claims.delete(name);
    if (before?.node != null) {
      const own = this.#claimsOf.get(before.node);
      own?.delete(before);
      if (own?.size === 0) this.#claimsOf.delete(before.node);
    }
    if (claim !== undefined) claims.set(name, claim);
    if (claim?.node != null)
      this.#claimsOf.set(claim.node, (this.#claimsOf.get(claim.node) ?? new Set()).add(claim));
    if (claims.size === 0) this.#claims.delete(backing);
    else this.#claims.set(backing, claims);
    // A claim decides whether its node still wants a slot.
    for (const node of new Set([before?.node, claim?.node])) {
      const entry = this.#nodes.get(node ?? "");
      if (entry !== undefined) this.#noteWanting(entry.id, entry, entry);
    }
  }
}

/** The slot that a node's record says it has, in states in which that is true. */
function placeOf(entry: NodeEntry | undefined): SlotPlace | undefined {
  return entry !== undefined && HAS.has(entry.record.state) ? slotPlace(entry.record) : undefined;
}

/** Slots of one provider and label are interchangeable, so launches wait for any of them. Such a node has one label. */
function wantKey({ record }: NodeEntry): string {
  return lineKey(record.provider ?? "", record.type[0] ?? "");
}

function lineKey(provider: string, label: string): string {
  return `${provider} ${label}`;
}

const noClaims: ReadonlyMap<string, SlotClaim> = new Map();
const nobody: ReadonlyMap<string, number> = new Map();

/**
 * Whether a claim is the one that its node's record names. Only such a claim may be freed by the node, and a claim that agrees with no
 * record is dropped by the provider's owner.
 */
export function agrees(claim: SlotClaim, place: SlotPlace | undefined): boolean {
  if (place?.backing !== claim.backing) return false;
  return claim.name === String(place.slot) || claim.name === spareName(claim.node ?? "");
}
