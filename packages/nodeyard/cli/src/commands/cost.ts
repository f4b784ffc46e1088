import { paths } from "@nodeyard/model";
import { renderTable } from "@nodeyard/operations/listing";
import { CostBook, type CostKey, type CostRow, costKeys } from "@nodeyard/planning";
import { messageOf } from "@nodeyard/runtime";
import { JOURNAL, readEvents } from "@nodeyard/telemetry";
import { type Command, Option } from "commander";
import { CommandError } from "../errors.ts";
import { printJson } from "../listing.ts";
import { type Session, stateOf, withTree } from "../session.ts";
import { daysOf, sinceOf } from "./plan.ts";

interface CostOptions {
  readonly by: CostKey;
  /** Seconds since the epoch. */
  readonly since?: number;
  readonly days: number;
  readonly json?: boolean;
}

const DAY_MS = 86_400_000;

/** `nodeyard cost`: reads the journal of this machine's launcher, and from the tree only which nodes there are. */
export function defineCost(command: Command, session: Session): void {
  command
    .addOption(new Option("--by <key>", "what to list").choices(costKeys).default("tenant"))
    .option("--since <time>", "from then on, as in 2026-01-31T10:00Z; else --days", sinceOf)
    .option("--days <number>", "the last days", daysOf, 7)
    .option(
      "--json",
      "an object on stdout: since, to, rows, gone (nodes without an end in the journal that are not in the tree; null: it does not answer)",
    )
    .addHelpText(
      "after",
      "\nFrom the journal of the launcher in the state folder, which has the nodes that it made and the prices that it knew. A node that another launcher deleted counts until the newest event of it there.",
    )
    .action((options: CostOptions) => cost(session, options));
}

async function cost(session: Session, { by, since, days, json }: CostOptions): Promise<void> {
  const to = session.machine.clock.now();
  const from = since === undefined ? to - days * DAY_MS : since * 1000;
  const book = new CostBook();
  const journal = `${stateOf(session)}/${JOURNAL}`;
  // From its beginning: nodes may be older than the time that is asked about.
  const problem = readEvents(journal, CostBook.events, 0, (event) => book.event(event));
  if (problem !== null)
    throw new CommandError("cli.no_costs", `${problem}; name the state folder of a launcher with --state`);
  const gone = await endGone(session, book);
  const rows = book.rows(by, from, to);
  const [sinceText, toText] = [from, to].map((at) => new Date(at).toISOString());
  if (json === true) printJson(session.io, { since: sinceText, to: toText, by, rows, gone });
  else session.io.out(renderTable(["Of", "Cost", "Hours", "Shared hours"], rows.map(cellsOf)));
}

/** Resolves with the number of nodes that it ended, and says so; null: the tree does not say which nodes there are. */
async function endGone(session: Session, book: CostBook): Promise<number | null> {
  try {
    const present = await withTree(session, ({ tree }) => tree.children(paths.nodes));
    const gone = book.endGone(new Set(present));
    if (gone > 0)
      session.io.err(
        `nodeyard: ${gone} nodes are gone, deleted by another launcher: they count until the newest event in this journal\n`,
      );
    return gone;
  } catch (error) {
    session.io.err(
      `nodeyard: nodes without an end in this journal count until now, since the tree does not say which are there: ${messageOf(error)}\n`,
    );
    return null;
  }
}

function cellsOf({ of, currency, cost, hours, shared_hours }: CostRow): (string | number)[] {
  return [of ?? "(nobody)", currency === null ? "unknown" : `${cost} ${currency}`, hours, shared_hours];
}
