import type { Command } from "commander";
import { requestColumns, requestRow } from "../../listing/index.ts";
import { listRequests } from "../../operations/index.ts";
import { printRows, printSkipped } from "../listing.ts";
import { type Session, withTree } from "../session.ts";

export function defineRequestList(command: Command, session: Session): void {
  command.option("--json", "an array of objects on stdout").action(({ json }: { readonly json?: boolean }) =>
    withTree(session, async (handles) => {
      const { items, skipped } = await listRequests(handles);
      printRows(session.io, items.map(requestRow), requestColumns, { json: json === true });
      printSkipped(session.io, skipped);
    }),
  );
}
