import {
  imageBuildStates,
  imageUploadStates,
  LEASES,
  nodeStates,
  paths,
  requestStates,
} from "@nodeyard/model";
import { type Command, Option } from "commander";
import {
  type AgeFormat,
  ageIn,
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
import { addFilters, type Filters, filtered } from "../filters.ts";
import { printRows, printSkipped } from "../listing.ts";
import { leaseColumns, leaseRow } from "../rows.ts";
import { type Session, withTree } from "../session.ts";
import { watching } from "../watching.ts";

/** What a list shows, and what of it cannot be read. */
interface Table extends Pick<Listing<unknown>, "skipped"> {
  readonly rows: readonly Row[];
  readonly columns: readonly Column[];
  /** Keys that only `--json` shows. */
  readonly jsonAlso?: readonly string[];
}

interface ListOptions extends Filters {
  readonly detail?: boolean;
  readonly leases?: boolean;
  readonly json?: boolean;
  readonly watch?: boolean;
}

/** How a list writes times: in JSON as seconds. */
type Ages = Exclude<AgeFormat, "epoch">;

/** Gives a command `--json`, `--watch` and an action that prints what `read` finds beneath `root`. */
function list(
  command: Command,
  session: Session,
  root: string,
  read: (handles: OperationHandles, ages: Ages, options: ListOptions) => Promise<Table>,
): void {
  command
    .option("--watch", "print it again whenever it changes, until Ctrl-C")
    .option("--json", "an array of objects on stdout; ages are seconds")
    .action((options: ListOptions) =>
      withTree(session, async (handles) => {
        const { json = false } = options;
        const print = async () => {
          const { rows, columns, skipped, ...more } = await read(handles, json ? "seconds" : "text", options);
          const chosen = await filtered(session, handles, rows, options);
          if (options.watch === true && session.io.isTerminal && !json) session.io.out("\u001b[H\u001b[2J");
          printRows(session.io, chosen, columns, { json, ...more });
          printSkipped(session.io, skipped);
        };
        if (options.watch !== true) return print();
        return watching(session, handles, [options.leases === true ? LEASES : root], print);
      }),
    );
}

/** `nodeyard list` */
export function defineList(command: Command, session: Session): void {
  command
    .option("--detail", "all columns of nodes")
    .addOption(
      new Option("--leases", "list leases instead of nodes").conflicts(["detail", "provider", "pool"]),
    );
  const states = [...nodeStates, "waiting", "granted", "released"];
  addFilters(command, ["state", "provider", "pool", "label"], states);
  list(command, session, paths.nodes, async (handles, ages, { detail, leases }) => {
    const now = treeNow(handles);
    if (leases === true) {
      const { items, skipped } = await listLeases(handles);
      const rows = items.map((lease) => leaseRow(lease, now, ages));
      return { rows, columns: leaseColumns, jsonAlso: ["expires", "age"], skipped };
    }
    const { items, skipped } = await listNodes(handles);
    const rows = items.map((item) => nodeRow(item, now, ages));
    return { rows, columns: detail === true ? nodeDetailColumns : nodeColumns, skipped };
  });
}

/** `nodeyard request-list` */
export function defineRequestList(command: Command, session: Session): void {
  addFilters(command, ["state", "label"], requestStates);
  list(command, session, paths.requests, async (handles) => {
    const { items, skipped } = await listRequests(handles);
    const now = treeNow(handles) / 1000;
    const rows = items.map((record) => ({
      ...requestRow(record),
      age: record.stateTime === null ? null : ageIn("seconds", now - record.stateTime),
    }));
    return { rows, columns: requestColumns, jsonAlso: ["age"], skipped };
  });
}

/** `nodeyard image-list` */
export function defineImageList(command: Command, session: Session): void {
  addFilters(command, ["state", "provider"], imageUploadStates);
  list(command, session, paths.images, async (handles, ages) => {
    const { items, skipped } = await listUploads(handles);
    return { rows: items.map((item) => uploadRow(item, handles, ages)), columns: uploadColumns, skipped };
  });
}

/** `nodeyard dib-image-list` */
export function defineDibImageList(command: Command, session: Session): void {
  addFilters(command, ["state"], imageBuildStates);
  list(command, session, paths.images, async (handles, ages) => {
    const { items, skipped } = await listBuilds(handles);
    const rows = items.map((item) => buildRow(item, handles, ages));
    return { rows, columns: buildColumns, jsonAlso: ["paused"], skipped };
  });
}

/** `nodeyard image-status` */
export function defineImageStatus(command: Command, session: Session): void {
  list(command, session, paths.images, async (handles, ages) => {
    const { items, skipped } = await listImages(handles);
    const rows = items.map((item) => imageRow(item, handles, ages));
    // The old table's columns, as long as no image has had a trial.
    const isTried = items.some(({ canary }) => canary !== null);
    const columns = isTried ? [...imageColumns, trialColumn] : imageColumns;
    return { rows, columns, jsonAlso: ["canary"], skipped };
  });
}
