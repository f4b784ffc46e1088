import { renderTable } from "@nodeyard/operations/listing";
import { CostBook, type CostKey, type CostRow, costKeys } from "@nodeyard/planning";
import { JOURNAL, readEvents } from "@nodeyard/telemetry";
import { type Command, Option } from "commander";
import { CommandError } from "../errors.ts";
import { printJson } from "../listing.ts";
import { type Session, stateOf } from "../session.ts";
import { daysOf, sinceOf } from "./plan.ts";

interface CostOptions {
  readonly by: CostKey;
  /** Seconds since the epoch. */
  readonly since?: number;
  readonly days: number;
  readonly json?: boolean;
}

const DAY_MS = 86_400_000;

/** `nodeyard cost`: reads the journal of this machine's launcher only. */
export function defineCost(command: Command, session: Session): void {
  command
    .addOption(new Option("--by <key>", "what to list").choices(costKeys).default("tenant"))
    .option("--since <time>", "from then on, as in 2026-01-31T10:00Z; else --days", sinceOf)
    .option("--days <number>", "the last days", daysOf, 7)
    .option("--json", "an object on stdout: since, to, rows")
    .addHelpText(
      "after",
      "\nFrom the journal of the launcher in the state folder, which has the nodes that it made and the prices that it knew.",
    )
    .action((options: CostOptions) => cost(session, options));
}

function cost(session: Session, { by, since, days, json }: CostOptions): void {
  const to = session.machine.clock.now();
  const from = since === undefined ? to - days * DAY_MS : since * 1000;
  const book = new CostBook();
  const journal = `${stateOf(session)}/${JOURNAL}`;
  // From its beginning: nodes may be older than the time that is asked about.
  const problem = readEvents(journal, CostBook.events, 0, (event) => book.event(event));
  if (problem !== null)
    throw new CommandError("cli.no_costs", `${problem}; name the state folder of a launcher with --state`);
  const rows = book.rows(by, from, to);
  const [sinceText, toText] = [from, to].map((at) => new Date(at).toISOString());
  if (json === true) printJson(session.io, { since: sinceText, to: toText, by, rows });
  else session.io.out(renderTable(["Of", "Cost", "Hours", "Shared hours"], rows.map(cellsOf)));
}

function cellsOf({ of, currency, cost, hours, shared_hours }: CostRow): (string | number)[] {
  return [of ?? "(nobody)", currency === null ? "unknown" : `${cost} ${currency}`, hours, shared_hours];
}
