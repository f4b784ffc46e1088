import { Command, Option } from "commander";
import { VERSION } from "../process/index.ts";
import { addAlienImages } from "./commands/alien-images.ts";
import { addBuilder } from "./commands/builder.ts";
import { addConfigValidate } from "./commands/config-validate.ts";
import { addErase } from "./commands/erase.ts";
import { addExplain } from "./commands/explain.ts";
import { addImageBuild } from "./commands/image-build.ts";
import { addImageChanges } from "./commands/image-changes.ts";
import { addImageData } from "./commands/image-data.ts";
import { addImageLists } from "./commands/image-lists.ts";
import { addInfo } from "./commands/info.ts";
import { addLauncher } from "./commands/launcher.ts";
import { addLeaks } from "./commands/leaks.ts";
import { addList } from "./commands/list.ts";
import { addDelete, addHold } from "./commands/node-state.ts";
import { addRelease } from "./commands/release.ts";
import { addRequest } from "./commands/request.ts";
import { addRequestList } from "./commands/request-list.ts";
import { addRetire } from "./commands/retire.ts";
import { addSliverd } from "./commands/sliverd.ts";
import { addUp } from "./commands/up.ts";
import type { GlobalOptions, Session } from "./session.ts";

const EXAMPLES = `
A first try:
  $ nodeyard -c examples/fake.yaml up            in one terminal; no ZooKeeper is needed
  $ nodeyard request fake-small:2 --wait         in another: two nodes, all together or not at all
  $ nodeyard list                                what there is
  $ nodeyard explain LEASE                       what it waits for, what happened, what is next
  $ nodeyard release LEASE                       give them back

Beside Zuul, on the ZooKeeper of the old configuration file:
  $ nodeyard -c /etc/nodepool/nodepool.yaml config-validate --strict
  $ nodeyard -c /etc/nodepool/nodepool.yaml launcher

Where commands look for the tree: the ZooKeeper of -c FILE; else the Nodeyard that runs on --state DIR
(NODEYARD_STATE; /var/lib/nodeyard for root, else ~/.local/state/nodeyard).
Exit codes: 0 done, 1 not done (one line on stderr says why), 2 not understood.
`;

/** The whole command line. Actions throw; `main` turns that into a line and an exit code. */
export function createProgram(session: Omit<Session, "options">): Command {
  const { io } = session;
  const program = new Command("nodeyard")
    .description("Nodeyard hands out test machines, all together or not at all.")
    .version(`Nodeyard version: ${VERSION}`, "--version", "print the version")
    .option("-c, --config <file>", "configuration (nodepool.yaml)")
    .option("-s, --secure <file>", "secure file with what must not be in it")
    .option("--state <dir>", "state folder")
    .option("--debug", "log everything")
    .addOption(
      new Option("--log-format <format>", "on stderr; default: text on a terminal, else json").choices([
        "text",
        "json",
      ]),
    )
    .addHelpText("after", EXAMPLES)
    .helpOption("-h, --help", "print this help, or that of a command")
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: io.out,
      writeErr: io.err,
      getOutHelpWidth: () => io.columns,
      getErrHelpWidth: () => io.columns,
      outputError: (text, write) => write(usageLine(text)),
    });
  const inner: Session = { ...session, options: () => program.opts<GlobalOptions>() };
  for (const add of [
    addUp,
    addLauncher,
    addBuilder,
    addRequest,
    addRelease,
    addRetire,
    addList,
    addLeaks,
    addRequestList,
    addExplain,
    addInfo,
    addHold,
    addDelete,
    addImageBuild,
    addImageLists,
    addImageChanges,
    addImageData,
    addAlienImages,
    addErase,
    addConfigValidate,
    addSliverd,
  ])
    add(program, inner);
  return program;
}

/** Commander's words in one line, with where to look. */
function usageLine(text: string): string {
  const said = text
    .replace(/^error: /, "")
    .trim()
    .replace(/\.?\s*\n\s*/g, " ");
  return `nodeyard: ${said}; see "nodeyard --help" or "nodeyard COMMAND --help"\n`;
}
