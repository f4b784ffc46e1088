/** One column: its heading, and its key in JSON, which is the old web application's (docs/contract/operations.md, "Columns"). */
export interface Column {
  readonly heading: string;
  readonly key: string;
  /** What people see in place of the value. Absent: the value as `cell` writes it. JSON always has the value. */
  readonly show?: (row: Row) => string;
}

/** A line of a list, by the keys of its columns. */
export type Row = Readonly<Record<string, unknown>>;

/** Columns by heading, in this order. */
export function columns(headings: Readonly<Record<string, string>>): readonly Column[] {
  return Object.entries(headings).map(([heading, key]) => ({ heading, key }));
}

/** The row with these keys only, and with all of them. Missing values are null, so that each row of a list has the same members. */
export function pick(row: Row, wanted: readonly Column[]): Row {
  return Object.fromEntries(wanted.map(({ key }) => [key, row[key] ?? null]));
}
