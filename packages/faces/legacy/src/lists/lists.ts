import { deadLetterPath } from "@nodeyard/model";
import { listImages, type OperationHandles, treeNow } from "@nodeyard/operations";
import {
  type AgeFormat,
  buildColumns,
  buildRow,
  type Column,
  imageColumns,
  imageRow,
  labelColumns,
  nodeRow,
  oldNodeColumns,
  type Row,
  requestColumns,
  requestRow,
  uploadColumns,
  uploadRow,
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

/** By path (docs/contract/operations.md, "Old web lists"). */
export const oldLists: Readonly<Record<string, OldList>> = {
  "/image-list": {
    columns: uploadColumns,
    rows: async ({ view, handles }, { json }) =>
      sorted(view.images.names()).flatMap((image) =>
        sortedBy([...view.images.uploads(image)], ({ build, provider, record }) => [
          build,
          provider,
          record.id,
        ]).map((upload) => uploadRow(upload, handles, agesIn(json))),
      ),
  },
  "/dib-image-list": {
    columns: buildColumns,
    jsonAlso: ["paused"],
    rows: async ({ view, handles }, { json }) =>
      sorted(view.images.names()).flatMap((image) => {
        const paused = view.images.get(image)?.paused ?? false;
        return sortedBy([...view.images.builds(image).values()], ({ id }) => [id]).map((record) =>
          buildRow({ image, record, paused }, handles, agesIn(json)),
        );
      }),
  },
  "/image-status": {
    columns: imageColumns,
    readsTree: true,
    rows: async ({ handles }, { json }) => {
      const { items } = await listImages(handles);
      return items.map((item) => imageRow(item, treeNow(handles), agesIn(json)));
    },
  },
  "/node-list": { columns: oldNodeColumns, rows: async (known, { nodeId }) => nodes(known, nodeId) },
  "/request-list": { columns: requestColumns, rows: async (known) => requests(known) },
  "/label-list": {
    columns: labelColumns,
    rows: async ({ view }) => labels(view).map((label) => ({ label })),
  },
};

/** One by one, since the view may have thousands; a node that goes while the list is made is left out. */
function* nodes({ view, handles }: Known, only: string | undefined): Generator<Row> {
  const now = treeNow(handles);
  for (const id of only === undefined ? sorted(view.nodes.byId.keys()) : [only]) {
    const entry = view.nodes.byId.get(id);
    if (entry === undefined) continue;
    const { record, contenders } = entry;
    yield nodeRow(
      { record, locked: contenders.length > 0, deadLetter: view.own.has(deadLetterPath(id)) },
      now,
    );
  }
}

function* requests({ view }: Known): Generator<Row> {
  for (const id of sorted(view.requests.byId.keys())) {
    const entry = view.requests.byId.get(id);
    if (entry !== undefined) yield requestRow(entry.record);
  }
}

/** What any pool of any launcher serves. */
function labels({ components }: View): readonly string[] {
  const pools = [...components.values()].filter(({ kind }) => kind === "pool");
  return sorted(new Set(pools.flatMap(({ record }) => record.supportedLabels)));
}

/** JSON has seconds since the epoch, tables an age in words. */
function agesIn(json: boolean): AgeFormat {
  return json ? "epoch" : "text";
}

function sorted(names: Iterable<string>): readonly string[] {
  return [...names].sort();
}

/** Keys are compared as one text, as paths of the tree are. */
function sortedBy<T>(items: readonly T[], keyOf: (item: T) => readonly string[]): readonly T[] {
  const keyed = items.map((item) => [keyOf(item).join("/"), item] as const);
  return keyed.sort(([a], [b]) => compareText(a, b)).map(([, item]) => item);
}
