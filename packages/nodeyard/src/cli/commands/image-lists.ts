import type { Command } from "commander";
import {
  buildColumns,
  buildRow,
  type Column,
  imageColumns,
  imageRow,
  type Row,
  trialColumn,
  uploadColumns,
  uploadRow,
} from "../../listing/index.ts";
import { listBuilds, listImages, listUploads, type OperationHandles } from "../../operations/index.ts";
import { printRows, printSkipped } from "../listing.ts";
import { type Session, withTree } from "../session.ts";

export function defineImageList(command: Command, session: Session): void {
  list(command, session, async (handles, json) => {
    const { items, skipped } = await listUploads(handles);
    const rows = items.map((item) => uploadRow(item, handles, json));
    return { rows, columns: uploadColumns, skipped };
  });
}

export function defineDibImageList(command: Command, session: Session): void {
  list(command, session, async (handles, json) => {
    const { items, skipped } = await listBuilds(handles);
    const rows = items.map((item) => buildRow(item, handles, json));
    return { rows, columns: buildColumns, jsonAlso: ["paused"], skipped };
  });
}

export function defineImageStatus(command: Command, session: Session): void {
  list(command, session, async (handles, json) => {
    const { items, skipped } = await listImages(handles);
    const rows = items.map((item) => imageRow(item, handles, json));
    // As the old table, as long as no image has had a trial.
    const isTried = items.some(({ canary }) => canary !== null);
    const columns = isTried ? [...imageColumns, trialColumn] : imageColumns;
    return { rows, columns, jsonAlso: ["canary"], skipped };
  });
}

interface Listed {
  readonly rows: readonly Row[];
  readonly columns: readonly Column[];
  /** Keys that only `--json` shows. */
  readonly jsonAlso?: readonly string[];
  readonly skipped: Parameters<typeof printSkipped>[1];
}

function list(
  command: Command,
  session: Session,
  read: (handles: OperationHandles, json: boolean) => Promise<Listed>,
): void {
  command
    .option("--json", "an array of objects on stdout")
    .action(({ json = false }: { readonly json?: boolean }) =>
      withTree(session, async (handles) => {
        const { rows, columns, skipped, ...more } = await read(handles, json);
        printRows(session.io, rows, columns, { json, ...more });
        printSkipped(session.io, skipped);
      }),
    );
}
