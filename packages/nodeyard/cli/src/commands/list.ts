import {
  imageBuildStates,
  imageUploadStates,
  nodeStates,
  requestStates,
  standingStates,
} from "@nodeyard/model";
import {
  ageOf,
  buildColumns,
  type Column,
  columns,
  imageColumns,
  jsonOnly,
  leaseColumns,
  leaseJobColumns,
  leaseJson,
  nodeColumns,
  nodeDetailColumns,
  type Row,
  requestColumns,
  standingColumns,
  standingJson,
  tenantColumns,
  tenantJson,
  trialColumns,
  uploadColumns,
} from "@nodeyard/operations/listing";
import { type Command, Option } from "commander";
import type { Backend, Rows, Watched } from "../backend/backend.ts";
import { withBackend } from "../backend/with-backend.ts";
import { addFilters, type Filters, filtered } from "../filters.ts";
import { printRows, printSkipped } from "../listing.ts";
import type { Session } from "../session.ts";
import { CLEAR, watching } from "../watching.ts";

/** What a list shows: rows with all their keys, of which `columns` are printed. */
interface Table extends Rows<Row> {
  readonly columns: readonly Column[];
  /** What only `--json` shows. */
  readonly jsonAlso?: readonly Column[];
}

interface ListOptions extends Filters {
  readonly detail?: boolean;
  readonly leases?: boolean;
  readonly tenants?: boolean;
  readonly providers?: boolean;
  readonly hosts?: boolean;
  readonly images?: boolean;
  readonly json?: boolean;
  readonly watch?: boolean;
}

/**
 * Gives a command `--json`, `--watch` and an action that prints what `read` finds. `what`: the changes after which `--watch`
 * prints again.
 */
function list(
  command: Command,
  session: Session,
  what: Watched,
  read: (backend: Backend, options: ListOptions) => Promise<Table>,
): void {
  command
    .option("--watch", "print it again whenever it changes, until Ctrl-C")
    .option("--json", "an array of objects on stdout; ages are seconds")
    .action((options: ListOptions) =>
      withBackend(session, async (backend) => {
        const { json = false } = options;
        const print = async () => {
          const { rows, columns, skipped, ...more } = await read(backend, options);
          const chosen = await filtered(session, backend, rows, options);
          // Only for eyes: a file or a program gets one list after the other.
          if (options.watch === true && session.io.isTerminal && !json) session.io.out(CLEAR);
          printRows(session.io, chosen, columns, { json, now: backend.now(), ...more });
          printSkipped(session.io, skipped);
        };
        if (options.watch !== true) return print();
        const watched = standingsIn(options) === undefined ? what : "standing";
        return watching(session, backend, [options.leases === true ? "lease" : watched], print);
      }),
    );
}

/** The kinds of standings that options of `list` ask for, with the heading of their names. */
const STANDINGS = {
  providers: ["Provider", "provider"],
  hosts: ["Host", "host"],
  images: ["Image", "image"],
} as const;

function standingsIn(options: ListOptions): (typeof STANDINGS)[keyof typeof STANDINGS] | undefined {
  const name = (Object.keys(STANDINGS) as (keyof typeof STANDINGS)[]).find((one) => options[one] === true);
  return name && STANDINGS[name];
}

/** `nodeyard list`: Nodepool's table of nodes, or Nodeyard's of leases, or how things stand. */
export function defineList(command: Command, session: Session): void {
  command
    .option("--detail", "all columns of nodes")
    .addOption(
      new Option("--leases", "list leases instead of nodes").conflicts(["detail", "provider", "pool"]),
    );
  for (const [name, what] of Object.entries({
    providers: "providers",
    hosts: "static hosts",
    images: "diskimages",
  }))
    command.addOption(
      new Option(`--${name}`, `list how ${what} stand: why something is wrong, and what to do`).conflicts([
        "detail",
        "leases",
        // Rows of standings have neither.
        "pool",
        "label",
        ...Object.keys(STANDINGS).filter((other) => other !== name),
      ]),
    );
  command.addOption(
    new Option(
      "--tenants",
      "list what tenants and their clients have, wait for and spend, as a launcher says",
    ).conflicts(["detail", "leases", "state", "provider", "pool", "label", ...Object.keys(STANDINGS)]),
  );
  // Of all lists: which one is meant is not known while options are parsed. A state of another one gives an empty list.
  const states = [
    ...new Set([...nodeStates, "waiting", "gathering", "granted", "released", ...standingStates]),
  ];
  addFilters(command, ["state", "provider", "pool", "label"], states);
  list(command, session, "node", async (backend, options) => {
    const { detail, leases } = options;
    const [heading, kind] = standingsIn(options) ?? [];
    if (heading !== undefined) {
      const { rows, skipped } = await backend.list("list_standings");
      const columns = standingColumns(heading);
      return { rows: rows.filter((row) => row.kind === kind), skipped, columns, jsonAlso: standingJson };
    }
    if (options.tenants === true)
      return { ...(await backend.list("list_tenants")), columns: tenantColumns, jsonAlso: tenantJson };
    if (leases === true) {
      const found = await backend.list("list_leases");
      const columns = found.rows.some(({ job }) => job !== null) ? leaseJobColumns : leaseColumns;
      return { ...found, columns, jsonAlso: leaseJson };
    }
    const columns = detail === true ? nodeDetailColumns : nodeColumns;
    return { ...(await backend.list("list_nodes")), columns };
  });
}

/** `nodeyard request-list`: answered requests are gone from the tree as soon as their requestors have taken the nodes. */
export function defineRequestList(command: Command, session: Session): void {
  addFilters(command, ["state", "label"], requestStates);
  list(command, session, "request", async (backend) => ({
    ...(await backend.list("list_requests")),
    columns: requestColumns,
    jsonAlso: columns({ Age: ["age", ageOf("since")] }),
  }));
}

/** `nodeyard image-list` */
export function defineImageList(command: Command, session: Session): void {
  addFilters(command, ["state", "provider"], imageUploadStates);
  list(command, session, "image", async (backend) => ({
    ...(await backend.list("list_uploads")),
    columns: uploadColumns,
  }));
}

/** `nodeyard dib-image-list` */
export function defineDibImageList(command: Command, session: Session): void {
  addFilters(command, ["state"], imageBuildStates);
  list(command, session, "image", async (backend) => ({
    ...(await backend.list("list_builds")),
    columns: buildColumns,
    jsonAlso: jsonOnly("paused"),
  }));
}

/** `nodeyard image-status` */
export function defineImageStatus(command: Command, session: Session): void {
  list(command, session, "image", async (backend) => {
    const { rows, skipped } = await backend.list("list_image_status");
    // The old table's columns, as long as no image has had a trial.
    const isTried = rows.some(({ canary }) => canary !== null);
    const shown = isTried ? [...imageColumns, ...trialColumns] : imageColumns;
    return { rows, skipped, columns: shown, jsonAlso: jsonOnly("canary") };
  });
}
