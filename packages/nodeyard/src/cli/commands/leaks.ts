import type { Command } from "commander";
import type { Column } from "../../listing/index.ts";
import { Drivers, loadModule, openConfig, surveyLeaks } from "../../process/index.ts";
import { printFailures, printRows } from "../listing.ts";
import { logOf } from "../log.ts";
import { filesOf, type Session, withTree } from "../session.ts";

interface LeaksOptions {
  readonly provider?: string;
  readonly json?: boolean;
}

const columns: readonly Column[] = [
  { heading: "Provider", key: "provider" },
  { heading: "What", key: "kind" },
  { heading: "Type", key: "type" },
  { heading: "ID", key: "id" },
  { heading: "Node", key: "node" },
  { heading: "A Sweep Would", key: "action" },
  { heading: "Because", key: "why" },
];

export function defineLeaks(command: Command, session: Session): void {
  command
    .option("--provider <name>", "only this provider of the configuration")
    .option("--json", "an array of objects on stdout")
    .action((options: LeaksOptions) => leaks(session, options));
}

async function leaks(session: Session, { provider, json }: LeaksOptions): Promise<void> {
  const { io, machine } = session;
  const drivers = new Drivers(loadModule);
  const { config } = await openConfig(filesOf(session), machine, drivers);
  const { found, failures } = await withTree(session, (handles) =>
    surveyLeaks({ handles, config, drivers, log: logOf(session), only: provider }),
  );
  printRows(
    io,
    found.map((difference) => ({ ...difference })),
    columns,
    { json: json === true },
  );
  printFailures(io, failures);
}
