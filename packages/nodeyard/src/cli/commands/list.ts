import { type Command, Option } from "commander";
import {
  buildColumns,
  buildRow,
  type Column,
  imageColumns,
  imageRow,
  nodeColumns,
  nodeDetailColumns,
  nodeRow,
  type Row,
  requestColumns,
  requestRow,
  trialColumn,
  uploadColumns,
  uploadRow,
} from "../../listing/index.ts";
import {
  type Listing,
  listBuilds,
  listImages,
  listLeases,
  listNodes,
  listRequests,
  listUploads,
  type OperationHandles,
  treeNow,
} from "../../operations/index.ts";
import { printRows, printSkipped } from "../listing.ts";
import { leaseColumns, leaseRow } from "../rows.ts";
import { type Session, withTree } from "../session.ts";

/** What a list shows, and what of it cannot be read. */
interface Table extends Pick<Listing<unknown>, "skipped"> {
  readonly rows: readonly Row[];
  readonly columns: readonly Column[];
  /** Keys that only `--json` shows. */
  readonly jsonAlso?: readonly string[];
}

interface ListOptions {
  readonly detail?: boolean;
  readonly leases?: boolean;
  readonly json?: boolean;
}

/** Gives a command `--json` and an action that prints what `read` finds. */
function list(
  command: Command,
  session: Session,
  read: (handles: OperationHandles, json: boolean, options: ListOptions) => Promise<Table>,
): void {
  command.option("--json", "an array of objects on stdout").action((options: ListOptions) =>
    withTree(session, async (handles) => {
      const { json = false } = options;
      const { rows, columns, skipped, ...more } = await read(handles, json, options);
      printRows(session.io, rows, columns, { json, ...more });
      printSkipped(session.io, skipped);
    }),
  );
}

/** `nodeyard list` */
export function defineList(command: Command, session: Session): void {
  command
    .option("--detail", "all columns of nodes")
    .addOption(new Option("--leases", "list leases instead of nodes").conflicts("detail"));
  list(command, session, async (handles, _, { detail, leases }) => {
    if (leases === true) {
      const { items, skipped } = await listLeases(handles);
      const rows = items.map((lease) => leaseRow(lease, treeNow(handles)));
      return { rows, columns: leaseColumns, jsonAlso: ["expires"], skipped };
    }
    const { items, skipped } = await listNodes(handles);
    const rows = items.map((item) => nodeRow(item, treeNow(handles)));
    return { rows, columns: detail === true ? nodeDetailColumns : nodeColumns, skipped };
  });
}

/** `nodeyard request-list` */
export function defineRequestList(command: Command, session: Session): void {
  list(command, session, async (handles) => {
    const { items, skipped } = await listRequests(handles);
    return { rows: items.map(requestRow), columns: requestColumns, skipped };
  });
}

/** `nodeyard image-list` */
export function defineImageList(command: Command, session: Session): void {
  list(command, session, async (handles, json) => {
    const { items, skipped } = await listUploads(handles);
    return { rows: items.map((item) => uploadRow(item, handles, json)), columns: uploadColumns, skipped };
  });
}

/** `nodeyard dib-image-list` */
export function defineDibImageList(command: Command, session: Session): void {
  list(command, session, async (handles, json) => {
    const { items, skipped } = await listBuilds(handles);
    const rows = items.map((item) => buildRow(item, handles, json));
    return { rows, columns: buildColumns, jsonAlso: ["paused"], skipped };
  });
}

/** `nodeyard image-status` */
export function defineImageStatus(command: Command, session: Session): void {
  list(command, session, async (handles, json) => {
    const { items, skipped } = await listImages(handles);
    const rows = items.map((item) => imageRow(item, handles, json));
    // The old table's columns, as long as no image has had a trial.
    const isTried = items.some(({ canary }) => canary !== null);
    const columns = isTried ? [...imageColumns, trialColumn] : imageColumns;
    return { rows, columns, jsonAlso: ["canary"], skipped };
  });
}
