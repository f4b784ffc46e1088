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

/** Whether machines of the provider, or of any, are divided into slivers. */
export function hasSlivers(provider?: string): boolean {
  return rows("standing").some(
    (one) => one.kind === "sliver-machine" && (provider ?? one.provider) === one.provider,
  );
}

/** The lease that holds the node. */
export function leaseOf(node: string): Rows["lease"] | undefined {
  return rows("lease").find(({ nodes }) => nodes.includes(node));
}

/** How many requests wait for nodes of a label. */
export function waitingFor(label: string): number {
  const counts = requestsByLabel.of(label);
  return (counts.get("requested") ?? 0) + (counts.get("pending") ?? 0);
}

/** Names of all labels that a pool offers, a node has or a request wants, sorted. */
export function labelNames(): readonly string[] {
  const offered = rows("pool").flatMap(({ labels }) => labels);
  return sorted([...offered, ...nodesByLabel.groups.keys(), ...requestsByLabel.groups.keys()]);
}

/** Names of all providers with a pool or a node, sorted. */
export function providerNames(): readonly string[] {
  return sorted([...rows("pool").map(({ provider }) => provider ?? ""), ...nodesByProvider.groups.keys()]);
}

function sorted(names: readonly string[]): readonly string[] {
  return [...new Set(names)].filter((name) => name !== "").sort();
}

/** Texts by which rows are found, by the filters of their lists and by the search. */
export const texts = {
  node: (node: Rows["node"]) => [
    ...[node.id, node.provider, node.pool, node.tenant, node.comment, node.allocated_to, node.hostname],
    ...[node.interface_ip, node.public_ipv4, node.private_ipv4, node.ipv6, node.hold_job, ...node.label],
    typeof node.server_id === "string" ? node.server_id : undefined,
  ],
  request: ({ id, requestor, lease, tenant, labels }: Rows["request"]) => [
    ...[id, requestor, lease, tenant, ...labels],
  ],
  lease: ({ id, owner, request, tenant, labels, nodes }: Rows["lease"]) => [
    ...[id, owner, request, tenant, ...labels, ...nodes],
  ],
} as const;

/** Whether one of the texts contains the wanted one, whatever the case. */
export function matches(wanted: string, all: readonly (string | null | undefined)[]): boolean {
  return all.some((one) => one?.toLowerCase().includes(wanted.toLowerCase()) === true);
}
