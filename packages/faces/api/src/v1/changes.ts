import { REMARKS } from "@nodeyard/model";
import type { Row } from "@nodeyard/operations/listing";
import type { View, ViewEvent } from "@nodeyard/view";
import { type Entry, KIND_NAMES, KINDS, type Kind, leaseAt } from "./kinds.ts";
import { type Principal, seesAll, seesSecrets } from "./principal.ts";

/** What a client wants to know of, and what it may see: together they decide which events it gets. */
export interface Interest {
  readonly principal: Principal;
  /** Of KIND_NAMES. */
  readonly kinds: ReadonlySet<string>;
  /** Values that keys of rows must have; a row without the key passes. Empty: all rows. */
  readonly filters: readonly (readonly [key: string, values: ReadonlySet<string>])[];
  /** Without keys that are null: half of a node's row. */
  readonly brief: boolean;
}

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
      const id = leaseAt(path);
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
  for (const kind of KIND_NAMES)
    if (kinds.has(kind))
      for (const [id, after] of KINDS[kind].all(view)) yield { kind, id, before: undefined, after };
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
  // A thing that a client saw and sees no longer, because it is gone, another's or of another state, is removed for it.
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
  const row = entry && KINDS[kind].row(entry, view, principal);
  const passes = (key: string, values: ReadonlySet<string>) => {
    const value = row?.[key];
    return value === undefined || [value].flat().some((one) => values.has(one === null ? "" : String(one)));
  };
  return filters.every(([key, values]) => passes(key, values)) ? row : undefined;
}
