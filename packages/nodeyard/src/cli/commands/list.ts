import type { Command } from "commander";
import { nodeColumns, nodeDetailColumns, nodeRow, requestColumns, requestRow } from "../../listing/index.ts";
import { listLeases, listNodes, listRequests, treeNow } from "../../operations/index.ts";
import { printRows, printSkipped } from "../listing.ts";
import { leaseColumns, leaseRow } from "../rows.ts";
import { type Session, withTree } from "../session.ts";

interface ListOptions {
  readonly detail?: boolean;
  readonly leases?: boolean;
  readonly json?: boolean;
}

export function defineList(command: Command, session: Session): void {
  command
    .option("--detail", "all columns")
    .option("--leases", "list leases instead of nodes")
    .option("--json", "an array of objects on stdout")
    .action((options: ListOptions) =>
      options.leases === true ? leases(session, options) : nodes(session, options),
    );
}

function nodes(session: Session, { detail, json }: ListOptions): Promise<void> {
  return withTree(session, async (handles) => {
    const { items, skipped } = await listNodes(handles);
    const now = treeNow(handles);
    const columns = detail === true ? nodeDetailColumns : nodeColumns;
    const rows = items.map((item) => nodeRow(item, now));
    printRows(session.io, rows, columns, { json: json === true });
    printSkipped(session.io, skipped);
  });
}

function leases(session: Session, { json }: ListOptions): Promise<void> {
  return withTree(session, async (handles) => {
    const { items, skipped } = await listLeases(handles);
    const now = treeNow(handles);
    const rows = items.map((lease) => leaseRow(lease, now));
    printRows(session.io, rows, leaseColumns, { json: json === true, jsonAlso: ["expires"] });
    printSkipped(session.io, skipped);
  });
}

export function defineRequestList(command: Command, session: Session): void {
  command.option("--json", "an array of objects on stdout").action(({ json }: { readonly json?: boolean }) =>
    withTree(session, async (handles) => {
      const { items, skipped } = await listRequests(handles);
      printRows(session.io, items.map(requestRow), requestColumns, { json: json === true });
      printSkipped(session.io, skipped);
    }),
  );
}
