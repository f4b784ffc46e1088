import { deadLetterPath } from "@nodeyard/model";
import { listImages, type OperationHandles, treeNow } from "@nodeyard/operations";
import {
  buildColumns,
  buildFields,
  type Column,
  columns,
  type Fields,
  imageColumns,
  imageStatusFields,
  nodeFields,
  oldNodeColumns,
  present,
  type Row,
  requestColumns,
  requestFields,
  rowOf,
  uploadColumns,
  uploadFields,
} from "@nodeyard/operations/listing";
import { compareText } from "@nodeyard/runtime";
import type { View } from "@nodeyard/view";

/** What lists are made of. */
export interface Known {
  readonly view: View;
  readonly handles: OperationHandles;
}

/**
 * A list of the old web application: its columns in their order, and its rows. Column order, names and ages are those of
 * Nodepool: programs parse them.
 */
export interface OldList {
  readonly columns: readonly Column[];
  /** Keys that only JSON has. */
  readonly jsonAlso?: readonly string[];
  /** Read from the tree itself, so that it waits where the tree is away. */
  readonly readsTree?: true;
  /** Rows are made one by one when they are read; deleted records are left out. */
  rows(
    known: Known,
    asked: { readonly json: boolean; readonly nodeId: string | undefined },
  ): Promise<Iterable<Row>>;
}

/**
 * A row with Nodepool's keys. JSON has seconds since the epoch for the age of what builders make; all other ages are in words.
 */
function oldRow<T>(
  { handles }: Known,
  fields: Fields<T>,
  shown: readonly Column[],
  thing: T,
  isEpoch = false,
): Row {
  return present(rowOf(fields, thing), shown, {
    now: treeNow(handles),
    ages: isEpoch ? "epoch" : "text",
  });
}

/** By path (docs/contract/operations.md, "Old web lists"). */
export const oldLists: Readonly<Record<string, OldList>> = {
  "/image-list": {
    columns: uploadColumns,
    rows: async (known, { json }) =>
      sorted(known.view.images.names()).flatMap((image) =>
        sortedBy([...known.view.images.uploads(image)], ({ build, provider, record }) => [
          build,
          provider,
          record.id,
        ]).map((upload) => oldRow(known, uploadFields, uploadColumns, upload, json)),
      ),
  },
  "/dib-image-list": {
    columns: buildColumns,
    jsonAlso: ["paused"],
    rows: async (known, { json }) =>
      sorted(known.view.images.names()).flatMap((image) => {
        const paused = known.view.images.get(image)?.paused ?? false;
        return sortedBy([...known.view.images.builds(image).values()], ({ id }) => [id]).map((record) =>
          oldRow(known, buildFields, buildColumns, { image, record, paused }, json),
        );
      }),
  },
  "/image-status": {
    columns: imageColumns,
    readsTree: true,
    rows: async (known, { json }) => {
      const { items } = await listImages(known.handles);
      return items.map((item) => oldRow(known, imageStatusFields, imageColumns, item, json));
    },
  },
  "/node-list": { columns: oldNodeColumns, rows: async (known, { nodeId }) => nodes(known, nodeId) },
  "/request-list": { columns: requestColumns, rows: async (known) => requests(known) },
  "/label-list": {
    columns: columns({ Label: "label" }),
    rows: async ({ view }) => labels(view).map((label) => ({ label })),
  },
};

/** One by one, since the view may have thousands; a node that goes while the list is made is left out. */
function* nodes(known: Known, only: string | undefined): Generator<Row> {
  const { view } = known;
  for (const id of only === undefined ? sorted(view.nodes.byId.keys()) : [only]) {
    const entry = view.nodes.byId.get(id);
    if (entry === undefined) continue;
    const { record, contenders } = entry;
    const listed = { record, locked: contenders.length > 0, deadLetter: view.own.has(deadLetterPath(id)) };
    yield oldRow(known, nodeFields, oldNodeColumns, listed);
  }
}

function* requests(known: Known): Generator<Row> {
  const { byId } = known.view.requests;
  for (const id of sorted(byId.keys())) {
    const entry = byId.get(id);
    if (entry !== undefined) yield oldRow(known, requestFields, requestColumns, entry.record);
  }
}

/** What any pool of any launcher serves. */
function labels({ components }: View): readonly string[] {
  const pools = [...components.values()].filter(({ kind }) => kind === "pool");
  return sorted(new Set(pools.flatMap(({ record }) => record.supportedLabels)));
}

function sorted(names: Iterable<string>): readonly string[] {
  return [...names].sort();
}

/** Keys are compared as one text, as paths of the tree are. */
function sortedBy<T>(items: readonly T[], keyOf: (item: T) => readonly string[]): readonly T[] {
  const keyed = items.map((item) => [keyOf(item).join("/"), item] as const);
  return keyed.sort(([a], [b]) => compareText(a, b)).map(([, item]) => item);
}
