import { plain } from "@nodeyard/operations/listing";
import type { Command } from "commander";
import { parseNodeId } from "../arguments.ts";
import { withBackend } from "../backend/with-backend.ts";
import { CommandError } from "../errors.ts";
import { printJson } from "../listing.ts";
import type { Session } from "../session.ts";

export function defineConsole(command: Command, session: Session): void {
  command
    .argument("<node>", 'id of a node, as "nodeyard list" shows it', parseNodeId)
    .option("--json", "an object on stdout: node, lines, and in cut whether there was more before")
    .addHelpText(
      "after",
      "\nAsks the launchers that serve the node's provider, for up to ten seconds. Of a machine that did not come up and is gone," +
        '\n"nodeyard explain NODE" has what its label keeps with console-log.',
    )
    .action((node: string, { json }: { readonly json?: boolean }) =>
      withBackend(session, async (backend) => {
        const { io } = session;
        const [end] = await backend.find("get_node_console", { path: { id: node } });
        if (end === undefined)
          throw new CommandError("cli.nothing_known", `there is no node ${node}; see "nodeyard list"`);
        const { lines, cut, problem } = end;
        if (problem !== null)
          throw new CommandError(
            "cli.no_console",
            `cannot show the console of node ${node}: ${problem}; "nodeyard explain ${node}" shows its life so far`,
          );
        if (json === true) return printJson(io, { node, lines, cut });
        io.out(lines.map((line) => `${plain(line)}\n`).join(""));
        if (cut) io.err(`nodeyard: these are the last ${lines.length} lines; there was more before\n`);
        if (lines.length === 0)
          io.err(`nodeyard: nothing was written to the console of node ${node} so far\n`);
      }),
    );
}
