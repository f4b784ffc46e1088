import { plain, renderTable } from "@nodeyard/operations/listing";
import {
  compare,
  DemandBook,
  type PlanRow,
  type Played,
  play,
  type TenantRow,
  type WaitFigures,
} from "@nodeyard/planning";
import {
  Drivers,
  launcherConfig,
  loadModule,
  openConfig,
  readText,
  withAnyDriver,
  writePrivate,
} from "@nodeyard/process";
import { counted } from "@nodeyard/runtime";
import { JOURNAL, readEvents } from "@nodeyard/telemetry";
import { type Command, InvalidArgumentError } from "commander";
import { CommandError, UsageError } from "../errors.ts";
import { printJson } from "../listing.ts";
import { filesOf, type Session, stateOf } from "../session.ts";

interface PlanOptions {
  /** Seconds since the epoch. */
  readonly since?: number;
  readonly days?: number;
  /** Files; absent: the journal of the state folder. */
  readonly demand?: readonly string[];
  readonly record?: string;
  readonly seed: number;
  readonly json?: boolean;
}

const DAY_S = 86_400;
/** Between two lines on how far it is, milliseconds. */
const PROGRESS_MS = 5_000;

/** `nodeyard plan`: reads files only. With `--record` alone it saves the demand, and plays nothing. */
export function definePlan(command: Command, session: Session): void {
  command
    .argument("[config]", "the new configuration; -c names today's")
    .option("--since <time>", "only requests from then on, as in 2026-01-31T10:00Z", sinceOf)
    .option("--days <number>", "only requests of so many days before the last one (default: 7)", daysOf)
    .option(
      "--demand <file>",
      "demand of this file instead of the journal of this state folder; may be repeated: each request counts once",
      (file: string, before: readonly string[] = []) => [...before, file],
    )
    .option("--record <file>", "write the demand to this file")
    .option("--seed <number>", "for what is left to chance; the same seed gives the same figures", seedOf, 1)
    .option("--json", "an object on stdout: requests, rows, tenants, lost, assumed; waits are seconds")
    .addHelpText(
      "after",
      "\nPlays the demand on launchers in this process, in virtual time, once with each configuration. Contacts no cloud, no tree and no" +
        "\nhost. Exit code 1 if the new configuration does not serve a request that today's serves.",
    )
    .action((config: string | undefined, options: PlanOptions) => plan(session, config, options));
}

/**
 * Plays the demand twice, today's configuration first, with the same seed: what differs comes from the configurations. Throws
 * UsageError and CommandError.
 */
async function plan(session: Session, config: string | undefined, options: PlanOptions): Promise<void> {
  if (config === undefined && options.record === undefined)
    throw new UsageError("plan needs a configuration to plan with, or --record FILE");
  if (options.since !== undefined && options.days !== undefined)
    throw new UsageError("--since and --days exclude each other");
  const demand = demandOf(session, options);
  if (options.record !== undefined) {
    // Lines of JSON, which `--demand` reads again.
    const all = [...demand.requests, ...demand.nodes];
    writePrivate(options.record, all.map((line) => `${JSON.stringify(line)}\n`).join(""));
    session.io.err(`${counted(demand.requests.length, "request")} written to ${options.record}\n`);
  }
  if (config === undefined) return;
  const files = filesOf(session);
  const installed = new Drivers(loadModule);
  const playing = async (name: string, path: string): Promise<Played> => {
    const read = await openConfig({ ...files, path }, session.machine, withAnyDriver(installed));
    return play({
      config: launcherConfig(read.config),
      demand,
      seed: options.seed,
      driverOf: (driver) => installed.ifInstalled(driver),
      onProgress: progress(session, name),
    });
  };
  const today = await playing("today's configuration", files.path);
  const planned = await playing("the new configuration", config);
  const compared = compare(today, planned);
  // What the journal lacks, and what was taken instead; each once, whichever play needed it.
  const assumed = [...new Set([...today.assumed, ...planned.assumed])];
  if (options.json === true)
    printJson(session.io, { requests: demand.requests.length, ...compared, assumed });
  else session.io.out(textOf(demand.requests.length, compared, assumed));
  // After the output, so that `--json` has the list that the error speaks of.
  const { length } = compared.lost;
  if (length > 0)
    throw new CommandError(
      "cli.plan_loses",
      `the new configuration does not serve ${length} of the requests that today's serves, the first is ${compared.lost[0]}; --json lists them`,
    );
}

/** The requests to play, from files or the journal. Throws CommandError where there are none. */
function demandOf(session: Session, { since, days, demand: files }: PlanOptions) {
  const book = new DemandBook();
  const journal = `${stateOf(session)}/${JOURNAL}`;
  if (files === undefined) {
    // Nodes of a request are returned after it was made: whatever is older than the oldest request is not needed.
    const from = since === undefined ? 0 : since * 1000;
    const problem = readEvents(journal, DemandBook.events, from, (event) => book.event(event));
    if (problem !== null)
      throw new CommandError(
        "cli.no_demand",
        `${problem}; name the state folder of a launcher with --state, or a file with --demand`,
      );
  } else for (const file of files) book.read(file, readText(file, "--demand"));
  // Days count back from the last request, not from today: a recorded week is still that week months later.
  const last = book.demand().requests.at(-1);
  const demand = book.demand(since ?? (last?.at ?? 0) - (days ?? 7) * DAY_S);
  if (demand.requests.length > 0) return demand;
  const where = files === undefined ? journal : files.join(", ");
  throw new CommandError(
    "cli.no_demand",
    `there is no request in ${where}${since === undefined ? "" : " since then"}; see "nodeyard docs plan-a-change"`,
  );
}

/** A line every few seconds: a busy week takes minutes. */
function progress({ io, machine: { clock } }: Session, name: string): (part: number) => void {
  let printed = clock.monotonic();
  return (part) => {
    if (clock.monotonic() - printed < PROGRESS_MS) return;
    printed = clock.monotonic();
    io.err(`${name}: ${Math.floor(100 * part)} %\n`);
  };
}

/** One line per provider and label: today's figure, an arrow, the planned one. "-": nothing was served, so there is no wait. */
function textOf(
  requests: number,
  { rows, tenants }: { readonly rows: readonly PlanRow[]; readonly tenants: readonly TenantRow[] },
  assumed: readonly string[],
): string {
  const cells = rows.map(({ provider, label, today, planned }) => {
    const pair = (of: (figures: PlanRow["today"]) => string | number) => `${of(today)} -> ${of(planned)}`;
    return [
      provider ?? "(nobody)",
      label ?? "(all)",
      ...waitCells(today, planned),
      pair((of) => of.peak_nodes),
      pair((of) => of.peak_cores),
      pair((of) => of.peak_ram),
      pair((of) => of.idle_hours),
      pair((of) => of.cost),
    ];
  });
  const head = ["Provider", "Label", ...WAITS, "Nodes", "Cores", "RAM, MiB", "Idle hours", "Cost"];
  const notes = assumed.map((line) => `not recorded: ${plain(line)}\n`).join("");
  const perTenant = tenants.map(({ tenant, today, planned }) => [
    tenant ?? "(none)",
    ...waitCells(today, planned),
  ]);
  // Requests without a tenant alone are those of the table above.
  const table = tenants.every(({ tenant }) => tenant === null)
    ? ""
    : renderTable(["Tenant", ...WAITS], perTenant);
  return `${requests} requests, today -> planned; nodes, cores and RAM at most at once\n${renderTable(head, cells)}${table}${notes}`;
}

const WAITS = ["Requests", "Median wait", "95 %", "Refused", "Unanswered"];

function waitCells(today: WaitFigures, planned: WaitFigures): readonly string[] {
  const pair = (of: (figures: WaitFigures) => string | number) => `${of(today)} -> ${of(planned)}`;
  const wait = (seconds: number | null) => (seconds === null ? "-" : `${seconds} s`);
  return [
    pair((of) => of.requests),
    pair((of) => wait(of.wait_median)),
    pair((of) => wait(of.wait_p95)),
    pair((of) => of.refused),
    pair((of) => of.unanswered),
  ];
}

/** Seconds since the epoch. Throws InvalidArgumentError, which commander prints with the option's name. */
export function sinceOf(text: string): number {
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw new InvalidArgumentError("write a time as in 2026-01-31T10:00Z.");
  return ms / 1000;
}

/** Days, which may have a fraction. */
export function daysOf(text: string): number {
  const days = Number(text);
  if (!(days > 0)) throw new InvalidArgumentError("write a number above 0.");
  return days;
}

function seedOf(text: string): number {
  const seed = Number(text);
  if (!Number.isSafeInteger(seed) || seed < 0) throw new InvalidArgumentError("write a whole number from 0.");
  return seed;
}
