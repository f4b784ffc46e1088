import { isSuspended, type NodeRecord } from "@nodeyard/model";
import { type Journal, type JournalEvent, type Log, logEvent } from "@nodeyard/telemetry";
import type { View, ViewEvent } from "@nodeyard/view";
import type { ServingPool } from "./handles.ts";

/**
 * A journal that also writes each event as a line of the log. The line has the fields of the event, then those of the node's record, so
 * that a search for a node or request finds its whole life. It has the event id of the request as long as the request exists.
 */
export function eventLines(journal: Journal, log: Log, view: Pick<View, "nodes" | "requests">): Journal {
  return {
    write(event) {
      journal.write(event);
      logEvent(log, fieldsOf(event, view));
    },
  };
}

function fieldsOf(
  { event, request, node, facts, record }: JournalEvent,
  { nodes, requests }: Pick<View, "nodes" | "requests">,
): Pick<JournalEvent, "event"> {
  // The event's own record comes first: a node that was just deleted is not in the view any more.
  const of = record ?? (node === undefined ? undefined : nodes.byId.get(node)?.record);
  const wanted =
    request ?? (typeof facts.request === "string" ? facts.request : of?.allocatedTo) ?? undefined;
  const eventId = wanted === undefined ? undefined : requests.byId.get(wanted)?.record.eventId;
  // Member by member: a launcher writes several thousand events a second, and an object literal of spreads takes many times as long.
  const fields: Pick<JournalEvent, "event"> & Record<string, unknown> = { event };
  if (eventId != null) fields.event_id = eventId;
  if (wanted !== undefined) fields.request = wanted;
  if (node !== undefined) fields.node = node;
  if (of !== undefined) {
    fields.provider = of.provider;
    fields.pool = of.pool;
    fields.label = of.type.join(",");
  }
  return Object.assign(fields, facts);
}

/** Steps of a node that its user or an operator writes into the record; no launcher takes part in them. */
const USES: Partial<Record<NodeRecord["state"], JournalEvent["event"]>> = {
  "in-use": "node.in-use",
  used: "node.returned",
  hold: "node.held",
};

/**
 * Notes steps of a node that clients and operators take, when the view shows them. Of several launchers the one that made the node
 * notes them; when it is gone, each launcher that serves the pool does.
 */
export function noteUse(
  change: Extract<ViewEvent, { type: "node" }>,
  { journal, view }: { readonly journal: Journal; readonly view: Pick<View, "components"> },
  pools: ReadonlyMap<string, ServingPool>,
): void {
  const { id, before, after } = change;
  if (before === undefined || after === undefined || before.record.state === after.record.state) return;
  const { record } = after;
  // A suspended spare is held by nobody.
  const event = isSuspended(record) ? undefined : USES[record.state];
  if (event === undefined) return;
  const ours = [...pools.values()];
  const isMaker = ours.some((pool) => pool.id === record.launcher);
  const serves = ours.some(({ open, name }) => open.config.name === record.provider && name === record.pool);
  if (isMaker || (serves && !isRegistered(view, record.launcher)))
    journal.write({
      event,
      node: id,
      facts: { from: before.record.state, ...usedFor(before.record, record) },
      record,
    });
}

/** How long a node was in use, for estimates after a restart. Read back by `Timings.recall`. */
function usedFor({ state, stateTime }: NodeRecord, after: NodeRecord): object {
  if (state !== "in-use" || stateTime === null || after.stateTime === null) return {};
  const ms = Math.round(Math.max(0, after.stateTime - stateTime) * 1_000);
  return { label: after.type.join(","), ms };
}

/** Whether the launcher pool that made a node still has a component. */
function isRegistered({ components }: Pick<View, "components">, pool: string | null): boolean {
  for (const { record } of components.values()) if (record.id === pool) return true;
  return false;
}
