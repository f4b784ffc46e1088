import { type Column, pick, plain, type Row, renderTable } from "@nodeyard/operations/listing";
import { CommandFailed } from "./errors.ts";
import type { Io } from "./session.ts";

/** Prints rows as a table or, with `json`, as an array of objects whose keys never change. */
export function printRows(
  io: Io,
  rows: readonly Row[],
  columns: readonly Column[],
  options: { readonly json?: boolean; readonly jsonAlso?: readonly string[] },
): void {
  if (options.json === true) {
    const wanted = [...columns, ...(options.jsonAlso ?? []).map((key) => ({ heading: key, key }))];
    return printJson(
      io,
      rows.map((row) => pick(row, wanted)),
    );
  }
  io.out(
    renderTable(
      columns.map(({ heading }) => heading),
      rows.map((row) => columns.map(({ key, show }) => (show === undefined ? row[key] : show(row)))),
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
