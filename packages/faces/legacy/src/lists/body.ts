import { type Column, jsonOnly, pick, type Row, Table } from "@nodeyard/operations/listing";
import type { Known, OldList } from "./lists.ts";

/** The query of a request for a list, as it was understood. */
export interface Query {
  readonly json: boolean;
  /** Keys of columns; undefined: all columns. */
  readonly fields: ReadonlySet<string> | undefined;
  /** Only this node; undefined: all. An id that does not exist gives an empty list. */
  readonly nodeId: string | undefined;
}

/** `fields=a,b`: names that do not exist are ignored, an empty value means all (docs/contract/operations.md, "Old web lists"). */
export function fieldsOf(text: string | null): ReadonlySet<string> | undefined {
  const names = (text ?? "").split(",").filter((name) => name !== "");
  return names.length === 0 ? undefined : new Set(names);
}

/**
 * The key of an answer in a cache: names in another order, twice, or of no column make no second answer.
 */
export function keyOf(path: string, list: OldList, { json, fields, nodeId }: Query): string {
  const keys = columnsOf(list, json, fields).map(({ key }) => key);
  return JSON.stringify([path, json, nodeId ?? null, keys]);
}

/** Rows between two pauses: a long list must not keep the launcher from its work. */
const AT_ONCE = 100;

/**
 * A table, or an array of objects, by the columns of `list`. `pause` is awaited between rows, so that other work of the process
 * continues; `shown` is a row as the caller may see it.
 */
export async function oldBody(
  list: OldList,
  known: Known,
  query: Query,
  shown: (row: Row) => Row,
  pause: () => Promise<void>,
): Promise<string> {
  const columns = columnsOf(list, query.json, query.fields);
  const rows = mapped(await list.rows(known, query), shown);
  const gather = query.json ? gatherJson : gatherTable;
  return gather(rows, columns, pause);
}

/** Makes the body of rows; each row is made when it is read, so that a long list is never whole in memory twice. */
type Gather = (
  rows: Iterable<Row>,
  columns: readonly Column[],
  pause: () => Promise<void>,
) => Promise<string>;

const gatherJson: Gather = async (rows, columns, pause) => {
  const texts: string[] = [];
  for await (const row of slowly(rows, pause)) texts.push(JSON.stringify(pick(row, columns)));
  return `[${texts.join(",")}]`;
};

const gatherTable: Gather = async (rows, columns, pause) => {
  const table = new Table(columns.map(({ heading }) => heading));
  for await (const row of slowly(rows, pause))
    table.add(columns.map(({ key, show }) => (show === undefined ? row[key] : show(row))));
  const lines: string[] = [];
  for await (const line of slowly(table.lines(), pause)) lines.push(line);
  return `${lines.join("\n")}\n`;
};

/** The items, with a pause after each hundred. */
async function* slowly<T>(items: Iterable<T>, pause: () => Promise<void>): AsyncGenerator<T> {
  let left = AT_ONCE;
  for (const item of items) {
    yield item;
    if (--left > 0) continue;
    left = AT_ONCE;
    await pause();
  }
}

/** The wanted columns in the list's own order, whatever the order in which they were named. */
function columnsOf(
  { columns, jsonAlso = [] }: OldList,
  json: boolean,
  fields: ReadonlySet<string> | undefined,
): readonly Column[] {
  const all = json ? [...columns, ...jsonOnly(...jsonAlso)] : columns;
  return fields === undefined ? all : all.filter(({ key }) => fields.has(key));
}

function* mapped(rows: Iterable<Row>, shown: (row: Row) => Row): Generator<Row> {
  for (const row of rows) yield shown(row);
}
