import { verdictMeaning } from "@nodeyard/operations";
import { plain } from "@nodeyard/operations/listing";
import { type ShadowRow, type ShadowSummary, shadowDifferences } from "@nodeyard/planning";
import { Drivers, loadModule, openConfig, startShadow } from "@nodeyard/process";
import { counted, settledWithin } from "@nodeyard/runtime";
import type { Command } from "commander";
import { parseDuration } from "../arguments.ts";
import { logOf } from "../log.ts";
import { filesOf, type Session, withTree } from "../session.ts";

interface ShadowOptions {
  /** Milliseconds. */
  readonly for?: number;
  readonly json?: boolean;
}

/** The longest delay of a timer (HTML, "Timers"), milliseconds: some 24 days. */
const FOREVER_MS = 2 ** 31 - 1;

/** `nodeyard shadow`: follows the tree until a signal, which is no failure, or for a time. */
export function defineShadow(command: Command, session: Session): void {
  command
    .option("--for <duration>", "end after this time; else at a signal, as Ctrl-C", parseDuration)
    .option(
      "--json",
      "one object in each line on stdout: a request that is over, with shadow, tree and differences; last the summary",
    )
    .addHelpText(
      "after",
      "\nReads the tree of -c FILE and asks the clouds for quota and labels, as a launcher with that file does, and writes nothing. A line for each" +
        "\nrequest that is over: what this launcher would have done, what was done, and how they differ.",
    )
    .action((options: ShadowOptions) => shadow(session, options));
}

async function shadow(session: Session, { for: ms = FOREVER_MS, json }: ShadowOptions): Promise<void> {
  const { io, machine } = session;
  const drivers = new Drivers(loadModule);
  const { config } = await openConfig(filesOf(session), machine, drivers);
  const log = logOf(session);
  const show = (row: ShadowRow) => io.out(json === true ? `${JSON.stringify(row)}\n` : lineOf(row));
  await withTree(
    session,
    async ({ tree }) => {
      const stopped = Promise.withResolvers<void>();
      const ignore = machine.onSignal(() => stopped.resolve());
      const running = await startShadow({ tree, config, drivers, log: log.area("launcher") }, machine, show);
      io.err("nodeyard: follows the tree and writes nothing; Ctrl-C ends it with a summary\n");
      await settledWithin(machine.clock, ms, stopped.promise);
      ignore();
      const summary = running.summary();
      io.out(json === true ? `${JSON.stringify({ summary })}\n` : summaryText(summary));
      await running.close();
    },
    { drivers, readsOnly: true },
  );
}

/** One request: what it wanted, both answers, and the differences. */
function lineOf({ request, labels, shadow, tree, differences }: ShadowRow): string {
  const nodes = ({ pool, reused, launched, wait }: ShadowRow["shadow" | "tree"]) =>
    `${pool}, ${reused} ready and ${launched} launched${wait === null ? "" : `, ${wait} s`}`;
  const why = (reason: string | null) => verdictMeaning(reason) ?? reason ?? "not decided yet";
  const here = shadow.result === "served" ? nodes(shadow) : `${shadow.result}: ${why(shadow.reason)}`;
  const there = tree.result === "served" ? nodes(tree) : tree.result;
  const differs = differences.map(
    ({ code, documented }) =>
      `differs, ${documented === null ? "undocumented" : "as documented"}: ${shadowDifferences[code]}`,
  );
  const end = tree.result === "withdrawn" ? ["withdrawn"] : differs.length === 0 ? ["the same"] : differs;
  return `${plain(request)} ${plain(labels.join(","))}: here ${plain(here)}; there ${plain(there)}; ${end.join("; ")}\n`;
}

function summaryText({ differences, shadow, tree, assumed, ...counts }: ShadowSummary): string {
  const waits = ({ wait_median, wait_p95 }: ShadowSummary["tree"]) =>
    wait_median === null ? "none was served" : `median ${wait_median} s, 95 % ${wait_p95} s`;
  return [
    `${counted(counts.requests, "request")}: ${counts.same} the same, ${counts.withdrawn} withdrawn; ${counts.open} more are not over`,
    ...differences.map(
      ({ code, documented, requests: count }) =>
        `${count} x ${shadowDifferences[code]}: ${documented === null ? "not documented" : `documented, "${documented}" (nodeyard docs differences)`}`,
    ),
    `waits here: ${waits(shadow)}`,
    `waits there: ${waits(tree)}`,
    ...assumed.map((line) => `not recorded: ${plain(line)}`),
    "",
  ].join("\n");
}
