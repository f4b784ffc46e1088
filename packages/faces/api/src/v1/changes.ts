import { REMARKS, type Standing } from "@nodeyard/model";
import { type Row, rowOf, standingFields } from "@nodeyard/operations/listing";
import type { ComponentEntry, NodeEntry, OwnEntry, RequestEntry, View, ViewEvent } from "@nodeyard/view";
import { type Principal, seesAll, seesSecrets } from "./principal.ts";
import { imageOf, leaseOf, memberFields, nodeOf, poolFields, requestOf } from "./rows.ts";

/** The kinds of things in an event stream; their rows are those of the lists. Values of `kinds`, and of `kind` in events. */
export const KINDS = ["node", "request", "lease", "image", "pool", "member", "standing"] as const;
export type Kind = (typeof KINDS)[number];

/** What a client wants to know of, and what it may see: together they decide which events it gets. */
export interface Interest {
  readonly principal: Principal;
  /** Of KINDS. */
  readonly kinds: ReadonlySet<string>;
  /** Values that keys of rows must have; a row without the key passes. Empty: all rows. */
  readonly filters: readonly (readonly [key: string, values: ReadonlySet<string>])[];
  /** Without keys that are null: half of a node's row. */
  readonly brief: boolean;
}

/**
 * The name of an image, whose row is made when it is sent: it sums up builds and uploads. The state before the change is not
 * kept; `former` stands for it.
 */
export interface ImageEntry {
  readonly image: string;
  readonly former?: boolean;
}

/** A thing as it was or is. */
export type Entry = NodeEntry | RequestEntry | OwnEntry | ComponentEntry | ImageEntry | Standing;

/** A change of one thing. `before` undefined: it is new; `after` undefined: it is gone. */
export interface Change {
  readonly kind: Kind;
  readonly id: string;
  readonly before: Entry | undefined;
  readonly after: Entry | undefined;
  /**
   * Nobody saw what became of the thing between the two, as it was removed while no process ran. Absent where the versions of its
   * record tell.
   */
  readonly skipped?: boolean;
}

/** Of the thing that changed. */
export function keyOf({ kind, id }: Change): string {
  return `${kind} ${id}`;
}

/** A key that is equal for two interests exactly when they get the same events. */
export function audienceOf({ principal, kinds, filters, brief }: Interest): string {
  const { name, role, labels, tenants } = principal;
  const who = seesAll(principal) ? seesSecrets(principal) : [name, role, [...labels], [...tenants]];
  return JSON.stringify([brief, who, [...kinds], filters.map(([key, values]) => [key, [...values]])]);
}

/**
 * The change in an event of the view; undefined when no stream shows it. A remark of a driver counts as a change of its node,
 * whose row has it.
 */
export function changeIn(event: ViewEvent, { nodes }: View): Change | undefined {
  switch (event.type) {
    case "node":
    case "request":
      return { kind: event.type, id: event.id, before: event.before, after: event.after };
    case "own": {
      const { path, before, after } = event;
      if (path.startsWith(`${REMARKS}/`)) {
        const node = nodes.byId.get(path.slice(REMARKS.length + 1));
        return node && { kind: "node", id: node.id, before: node, after: node };
      }
      const id = /^\/nodeyard\/leases\/([^/]+)$/.exec(path)?.[1];
      return id === undefined ? undefined : { kind: "lease", id, before, after };
    }
    case "standing":
      return { kind: event.type, id: event.id, before: event.before, after: event.after };
    case "image": {
      const { image } = event;
      return { kind: "image", id: image, before: { image, former: true }, after: { image } };
    }
    case "component": {
      const { key, before, after } = event;
      return { kind: (after ?? before)?.kind === "pool" ? "pool" : "member", id: key, before, after };
    }
    default:
      return undefined;
  }
}

/** All current things, as changes from nothing. Changes during the iteration may be included or not. */
export function* everything(view: View, kinds: ReadonlySet<string>): Generator<Change> {
  const made = (kind: Kind, id: string, after: Entry): Change => ({ kind, id, before: undefined, after });
  if (kinds.has("node")) for (const entry of view.nodes.byId.values()) yield made("node", entry.id, entry);
  if (kinds.has("request"))
    for (const entry of view.requests.byId.values()) yield made("request", entry.id, entry);
  if (kinds.has("lease"))
    for (const entry of view.own.values()) {
      const change = changeIn({ type: "own", path: entry.path, after: entry }, view);
      if (change?.kind === "lease") yield change;
    }
  if (kinds.has("image")) for (const image of view.images.names()) yield made("image", image, { image });
  if (kinds.has("standing"))
    for (const entry of view.standings.list()) yield made("standing", entry.id, entry);
  for (const entry of view.components.values()) {
    const kind = entry.kind === "pool" ? "pool" : "member";
    if (kinds.has(kind)) yield made(kind, entry.key, entry);
  }
}

/** The event that a client is sent, without its id; undefined where it sees nothing of the change. */
export function textOf(
  change: Change,
  view: View,
  interest: Interest,
  { each = false }: { readonly each?: boolean } = {},
): string | undefined {
  const { kind, id, before, after } = change;
  if (!interest.kinds.has(kind)) return undefined;
  const row = seen(kind, after, view, interest);
  const more = each && hasSkipped(change) ? { skipped: true } : {};
  if (row !== undefined) {
    const sent = interest.brief ? withoutNulls(row) : row;
    return `event: put\ndata: ${JSON.stringify({ kind, id, row: sent, ...more })}\n\n`;
  }
  // What a client saw and sees no longer, because it is gone, another's or of another state, is removed for it.
  if (seen(kind, before, view, interest) === undefined) return undefined;
  return `event: remove\ndata: ${JSON.stringify({ kind, id, ...more })}\n\n`;
}

/**
 * Whether the record of the thing was written more than once between the two states. ZooKeeper counts versions of data, not of
 * locks; a new record has the version 0.
 */
function hasSkipped({ before, after, skipped }: Change): boolean {
  if (skipped !== undefined || after === undefined || !("version" in after)) return skipped === true;
  return after.version > (before !== undefined && "version" in before ? before.version + 1 : 0);
}

/** Of one level: what is within a key stays as it is. */
function withoutNulls(row: Row): Row {
  const kept: Record<string, unknown> = {};
  for (const key in row) if (row[key] !== null) kept[key] = row[key];
  return kept;
}

/**
 * The row that the client sees; undefined: the thing is not there, another's, or not what it asks for. Null in a row is matched
 * by an empty value.
 */
function seen(
  kind: Kind,
  entry: Entry | undefined,
  view: View,
  { principal, filters }: Interest,
): Row | undefined {
  const row = entry && shown(kind, entry, view, principal);
  const passes = (key: string, values: ReadonlySet<string>) => {
    const value = row?.[key];
    return value === undefined || [value].flat().some((one) => values.has(one === null ? "" : String(one)));
  };
  return filters.every(([key, values]) => passes(key, values)) ? row : undefined;
}

/** The row of a thing, as the lists have it; undefined where the caller may not see it. */
function shown(kind: Kind, entry: Entry, view: View, principal: Principal): Row | undefined {
  switch (kind) {
    case "node":
      return nodeOf(entry as NodeEntry, view, principal);
    case "request":
      return requestOf((entry as RequestEntry).record, principal);
    case "lease":
      return leaseOf(entry as OwnEntry, principal);
    case "image": {
      const { image, former } = entry as ImageEntry;
      if (!seesAll(principal)) return undefined;
      // A former image needs no more than its name: it is only asked whether it was seen.
      return former === true ? { image } : imageOf(view, image);
    }
    case "pool":
      return seesAll(principal) ? rowOf(poolFields, entry as ComponentEntry) : undefined;
    case "member":
      return seesAll(principal) ? rowOf(memberFields, entry as ComponentEntry) : undefined;
    case "standing":
      return seesAll(principal) ? rowOf(standingFields, entry as Standing) : undefined;
  }
}
