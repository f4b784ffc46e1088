import { type Column, pick, type Row, renderTable } from "../listing/index.ts";
import type { Sight } from "./http/caller.ts";
import type { Known } from "./known.ts";
import type { OldList } from "./old-lists.ts";

/** What jobs and drivers write for themselves, passwords included. */
const SECRET: ReadonlySet<string> = new Set(["comment", "user_data", "driver_data"]);
const REDACTED = "redacted";

/** What one request asks of a list. */
export interface Asked {
  readonly json: boolean;
  /** Keys; undefined: all columns. */
  readonly fields: ReadonlySet<string> | undefined;
  readonly nodeId: string | undefined;
  readonly sight: Sight;
}

/** `fields=a,b`: names that do not exist are ignored, an empty value means all (spec operations.md 2). */
export function fieldsOf(text: string | null): ReadonlySet<string> | undefined {
  const names = (text ?? "").split(",").filter((name) => name !== "");
  return names.length === 0 ? undefined : new Set(names);
}

/** The same for the same answer: names in another order, twice, or of no column make no second one. */
export function keyOf(path: string, list: OldList, { json, fields, nodeId, sight }: Asked): string {
  const keys = columnsOf(list, json, fields).map(({ key }) => key);
  return JSON.stringify([path, json, sight, nodeId ?? null, keys]);
}

/** A table, or an array of objects. */
export async function oldBody(list: OldList, known: Known, asked: Asked): Promise<string> {
  const columns = columnsOf(list, asked.json, asked.fields);
  const all = await list.rows(known, asked);
  const rows = asked.sight === "all" ? all : all.map(redacted);
  if (asked.json) return JSON.stringify(rows.map((row) => pick(row, columns)));
  return renderTable(
    columns.map(({ heading }) => heading),
    rows.map((row) => columns.map(({ key, show }) => (show === undefined ? row[key] : show(row)))),
  );
}

function columnsOf(
  { columns, jsonAlso = [] }: OldList,
  json: boolean,
  fields: ReadonlySet<string> | undefined,
): readonly Column[] {
  const all = json ? [...columns, ...jsonAlso.map((key) => ({ heading: key, key }))] : columns;
  return fields === undefined ? all : all.filter(({ key }) => fields.has(key));
}

/** That there is something is no secret. */
function redacted(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([key, value]) => [key, SECRET.has(key) && !isNothing(value) ? REDACTED : value]),
  );
}

function isNothing(value: unknown): boolean {
  return value === null || value === undefined;
}
