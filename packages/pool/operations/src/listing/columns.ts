import { type AgeFormat, ageIn } from "./table.ts";

/** A line of a list, by the keys of its columns. */
export type Row = Readonly<Record<string, unknown>>;

/** When a list is read, tree time in milliseconds, and how it writes times. */
export interface When {
  readonly now: number;
  readonly ages: AgeFormat;
}

/** One column: its heading, and its key in JSON, which is the old web application's (docs/contract/operations.md, "Columns"). */
export interface Column {
  readonly heading: string;
  readonly key: string;
  /** The value, where REST has it by another key or in another form. */
  readonly value?: (row: Row, when: When) => unknown;
  /** What people see in place of the value. Absent: the value as `cell` writes it. JSON always has the value. */
  readonly show?: (row: Row) => string;
}

/** Columns by heading, in this order; the values of those with a function are made from REST's row. */
export function columns(
  headings: Readonly<Record<string, string | readonly [key: string, value: NonNullable<Column["value"]>]>>,
): readonly Column[] {
  return Object.entries(headings).map(([heading, one]) =>
    typeof one === "string" ? { heading, key: one } : { heading, key: one[0], value: one[1] },
  );
}

/** Columns that only JSON has. */
export function jsonOnly(...names: readonly string[]): readonly Column[] {
  return names.map((key) => ({ heading: key, key }));
}

/** REST's row of a thing with the values that these columns have instead. Read it by key: what is not instead is inherited. */
export function present(row: Row, shown: readonly Column[], when: When): Row {
  // A copy of thirty keys for each of thousands of rows was a tenth of what a list takes.
  const own: Record<string, unknown> = Object.create(row);
  for (const { key, value } of shown) if (value !== undefined) own[key] = value(row, when);
  return own;
}

/** The row with these keys only, and with all of them. Missing values are null, so that each row of a list has the same members. */
export function pick(row: Row, wanted: readonly Column[]): Row {
  return Object.fromEntries(wanted.map(({ key }) => [key, row[key] ?? null]));
}

/** The column of an age: how long ago the moment of the row's `key` was; null: it has none. */
export function ageOf(key: string): NonNullable<Column["value"]> {
  return (row, { now, ages }) => {
    const ms = msOf(row[key]);
    if (ms === null) return null;
    return ages === "epoch" ? Math.floor(ms / 1_000) : ageIn(ages, (now - ms) / 1_000);
  };
}

/** A moment of a row, ISO 8601, in milliseconds. */
export function msOf(moment: unknown): number | null {
  return typeof moment === "string" ? Date.parse(moment) : null;
}
