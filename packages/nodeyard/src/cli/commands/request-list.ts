import type { Command } from "commander";
import { requestColumns, requestRow } from "../../listing/index.ts";
import { listRequests } from "../../operations/index.ts";
import { printRows, printSkipped } from "../listing.ts";
import { type Session, withTree } from "../session.ts";

export function addRequestList(program: Command, session: Session): void {
  program
    .command("request-list")
    .description("list the node requests that are not answered yet, of Zuul and of everyone else")
    .option("--json", "an array of objects on stdout")
    .action(({ json }: { readonly json?: boolean }) =>
      withTree(session, async (handles) => {
        const { items, skipped } = await listRequests(handles);
        printRows(session.io, items.map(requestRow), requestColumns, { json: json === true });
        printSkipped(session.io, skipped);
      }),
    );
}
