import { type Column, pick, plain, present, type Row, renderTable } from "@nodeyard/operations/listing";
import { CommandFailed } from "./errors.ts";
import type { Io } from "./session.ts";

/**
 * Prints rows as a table or, with `json`, as an array of objects whose keys never change; `jsonAlso`: columns that only these have. `now`: tree
 * time, for ages.
 */
export function printRows(
  io: Io,
  rows: readonly Row[],
  columns: readonly Column[],
  options: { readonly json?: boolean; readonly jsonAlso?: readonly Column[]; readonly now?: number },
): void {
  const { json = false, jsonAlso = [], now = 0 } = options;
  const wanted = json ? [...columns, ...jsonAlso] : columns;
  const shown = rows.map((row) => present(row, wanted, { now, ages: json ? "seconds" : "text" }));
  if (json)
    return printJson(
      io,
      shown.map((row) => pick(row, wanted)),
    );
  io.out(
    renderTable(
      columns.map(({ heading }) => heading),
      shown.map((row) => columns.map(({ key, show }) => (show === undefined ? row[key] : show(row)))),
    ),
  );
}

/** Prints one value for programs. */
export function printJson(io: Io, value: unknown): void {
  io.out(`${JSON.stringify(value, null, 2)}\n`);
}

/** Records that cannot be read are reported separately; the others are still shown. */
export function printSkipped(
  io: Io,
  skipped: readonly { readonly path: string; readonly why: string }[],
): void {
  for (const { path, why } of skipped) io.err(`nodeyard: left out ${plain(path)}: ${plain(why)}\n`);
}

/** Providers that could not be asked are named, after what the others answered; then the command has failed. */
export function printFailures(
  io: Io,
  failures: readonly { readonly provider: string; readonly error: string }[],
): void {
  for (const { provider, error } of failures)
    io.err(`nodeyard: provider ${plain(provider)} could not be asked: ${plain(error)}\n`);
  if (failures.length > 0) throw new CommandFailed(1);
}
