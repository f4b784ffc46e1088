import { type Signal, signal } from "@preact/signals";
import { Counts } from "./counts.ts";
import { Feed } from "./feed.ts";
import type { Kind, Rows } from "./rows.ts";
import { Table } from "./table.ts";

/** All rows of the stream of events. */
export const tables: { readonly [K in Kind]: Table<Rows[K]> } = {
  node: new Table(),
  request: new Table(),
  lease: new Table(),
  image: new Table(),
  pool: new Table(),
  member: new Table(),
  standing: new Table(),
};

export const feed = new Feed(tables);

/** Number of batches that changed a table. A component that reads it is drawn again after each batch. */
export const versions = Object.fromEntries(Object.keys(tables).map((kind) => [kind, signal(0)])) as Readonly<
  Record<Kind, Signal<number>>
>;

export const nodesByLabel = new Counts<Rows["node"]>(
  ({ label }) => label,
  ({ state }) => state,
);
export const nodesByProvider = new Counts<Rows["node"]>(
  ({ provider }) => [provider ?? ""],
  ({ state }) => state,
);
export const nodesInAll = new Counts<Rows["node"]>(
  () => ["all"],
  ({ state }) => state,
);
/** Requests by label and state. A request with the same label twice counts once. */
export const requestsByLabel = new Counts<Rows["request"]>(
  ({ labels }) => [...new Set(labels)],
  ({ state }) => state,
);

// Registered before the versions, so that components find the new counts when they are drawn again.
for (const counts of [nodesByLabel, nodesByProvider, nodesInAll])
  tables.node.listen((changes) => counts.apply(changes));
tables.request.listen((changes) => requestsByLabel.apply(changes));
for (const [kind, table] of Object.entries(tables) as [Kind, Table<unknown>][])
  table.listen(() => void versions[kind].value++);

/** The row of an id, read again whenever its table changes. */
export function row<K extends Kind>(kind: K, id: string): Rows[K] | undefined {
  void versions[kind].value;
  return tables[kind].get(id);
}

/** All rows of a small table, read again whenever it changes. */
export function rows<K extends Kind>(kind: K): readonly Rows[K][] {
  void versions[kind].value;
  return [...tables[kind].values()];
}
