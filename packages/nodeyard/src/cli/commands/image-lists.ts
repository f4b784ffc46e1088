import type { Command } from "commander";
import {
  buildColumns,
  buildRow,
  imageColumns,
  imageRow,
  trialColumn,
  uploadColumns,
  uploadRow,
} from "../../listing/index.ts";
import { listBuilds, listImages, listUploads } from "../../operations/index.ts";
import { printRows, printSkipped } from "../listing.ts";
import { type Session, withTree } from "../session.ts";

interface JsonOption {
  readonly json?: boolean;
}

export function addImageLists(program: Command, session: Session): void {
  const { io } = session;
  const list = (name: string, description: string, action: (json: boolean) => Promise<void>) =>
    program
      .command(name)
      .description(description)
      .option("--json", "an array of objects on stdout")
      .action(({ json }: JsonOption) => action(json === true));
  list("image-list", "list uploads of diskimages to providers", (json) =>
    withTree(session, async (handles) => {
      const { items, skipped } = await listUploads(handles);
      printRows(
        io,
        items.map((item) => uploadRow(item, handles, json)),
        uploadColumns,
        { json },
      );
      printSkipped(io, skipped);
    }),
  );
  list("dib-image-list", "list builds of diskimages", (json) =>
    withTree(session, async (handles) => {
      const { items, skipped } = await listBuilds(handles);
      printRows(
        io,
        items.map((item) => buildRow(item, handles, json)),
        buildColumns,
        { json, jsonAlso: ["paused"] },
      );
      printSkipped(io, skipped);
    }),
  );
  list(
    "image-status",
    "list diskimages: which are paused, for which a build is asked, how trials of new builds go",
    (json) =>
      withTree(session, async (handles) => {
        const { items, skipped } = await listImages(handles);
        printRows(
          io,
          items.map((item) => imageRow(item, handles, json)),
          // As the old table, as long as no image has had a trial.
          items.some(({ canary }) => canary !== null) ? [...imageColumns, trialColumn] : imageColumns,
          { json, jsonAlso: ["canary"] },
        );
        printSkipped(io, skipped);
      }),
  );
}
