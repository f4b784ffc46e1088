import { decodeClaim, folderProvider, SLOTS, slotsPath } from "../../operations/index.ts";
import type { OwnEntry, ViewEvent } from "../../view/index.ts";

export interface Claim {
  readonly path: string;
  readonly backing: string;
  /** The slot's number, or `spareName` of its node. */
  readonly name: string;
  readonly node: string | null;
}

const none: ReadonlyMap<string, Claim> = new Map();

/** Who has which slot, as /nodeyard/slots tells it: by backing node and by the node that has it. */
export class Claims {
  /** Providers by backing node: it takes slots only while its folder stands. */
  readonly folders = new Map<string, string | null>();
  /** Backing nodes that somebody wants retired. */
  readonly retired = new Set<string>();
  readonly #byBacking = new Map<string, Map<string, Claim>>();
  readonly #byNode = new Map<string, Set<Claim>>();
  readonly #onNode: (node: string) => void;

  /** `onNode` is called for each node whose claims changed. */
  constructor(onNode: (node: string) => void) {
    this.#onNode = onNode;
  }

  /** The backing node that an event concerns; undefined when it concerns none. */
  take(event: Extract<ViewEvent, { type: "own" }>): string | undefined {
    const place = slotsPath(event.path);
    if (place === undefined) return undefined;
    const { backing } = place;
    if (place.kind === "folder") {
      if (event.after === undefined) this.folders.delete(backing);
      else this.folders.set(backing, folderProvider(event.after.data));
    } else if (place.kind === "retired") {
      if (event.after === undefined) this.retired.delete(backing);
      else this.retired.add(backing);
    } else this.#put(backing, place.name, event.path, event.after);
    return backing;
  }

  of(backing: string): ReadonlyMap<string, Claim> {
    return this.#byBacking.get(backing) ?? none;
  }

  ofNode(node: string): readonly Claim[] {
    return [...(this.#byNode.get(node) ?? [])];
  }

  #put(backing: string, name: string, path: string, entry: OwnEntry | undefined): void {
    const claims = this.#byBacking.get(backing) ?? new Map<string, Claim>();
    const before = claims.get(name);
    if (before !== undefined) {
      claims.delete(name);
      const others = this.#byNode.get(before.node ?? "");
      others?.delete(before);
      if (others?.size === 0) this.#byNode.delete(before.node ?? "");
    }
    if (entry !== undefined) {
      const claim: Claim = { path, backing, name, node: decodeClaim(entry.data) };
      claims.set(name, claim);
      const key = claim.node ?? "";
      this.#byNode.set(key, (this.#byNode.get(key) ?? new Set()).add(claim));
    }
    if (claims.size === 0) this.#byBacking.delete(backing);
    else this.#byBacking.set(backing, claims);
    const after = claims.get(name)?.node;
    if (before?.node != null && before.node !== after) this.#onNode(before.node);
    if (after != null) this.#onNode(after);
  }
}

export function claimPath(backing: string, name: string | number): string {
  return `${SLOTS}/${backing}/${name}`;
}

/** Claim of a node whose slot is another's already, as older launchers could do: it keeps the backing node, and no slot. */
export function spareName(node: string): string {
  return `also-${node}`;
}
