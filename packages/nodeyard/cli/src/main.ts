import { messageOf } from "@nodeyard/runtime";
import { type Machine, VERSION } from "@nodeyard/telemetry/machine";
import { Command, CommanderError, Option } from "commander";
import { COMMANDS } from "./commands.ts";
import { type Described, describe } from "./described.ts";
import { CommandFailed, EXIT_CODES, exitCodeOf, UsageError } from "./errors.ts";
import type { GlobalOptions, Io, Session } from "./session.ts";

/**
 * Runs one command line, without the program's own name, and returns the exit code. Never rejects. Called once by
 * bin/nodeyard.ts, and by tests with an `io` and a `machine` of their own: nothing here touches the process.
 */
export async function main(words: readonly string[], io: Io, machine: Machine): Promise<number> {
  const run = async (quick: boolean) => {
    const program = await createProgram({ io, machine }, { quick });
    program.addHelpText("after", EXIT_TEXT);
    await program.parseAsync(words, { from: "user" });
  };
  try {
    await run(true).catch((error) => {
      // No action has begun.
      if (error instanceof NeedsAll) return run(false);
      throw error;
    });
    return 0;
  } catch (error) {
    return codeOf(error, io, words.includes("--debug"));
  }
}

/** Prints an error in one line, unless its thrower has, and returns the exit code. `debug`: with the stack. */
async function codeOf(error: unknown, io: Io, debug: boolean): Promise<number> {
  // Commander has said it already. 0 is for help and version that were asked for; without a command help is a failure.
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0;
    return error.code === "commander.help" ? 1 : 2;
  }
  if (error instanceof CommandFailed) return exitCodeOf(error);
  // Here, since a command line that succeeds needs no table.
  const { plain } = await import("@nodeyard/operations/listing");
  io.err(`nodeyard: ${plain(messageOf(error))}\n`);
  if (debug && error instanceof Error) io.err(`${error.stack}\n`);
  return exitCodeOf(error);
}

const EXAMPLES = `
A first try:
  $ nodeyard -c examples/fake.yaml up            in one terminal; no ZooKeeper is needed
  $ nodeyard request fake-small:2 --wait         in another: two nodes, all together or not at all
  $ nodeyard list                                all nodes
  $ nodeyard explain LEASE                       why it waits, what happened, what is next
  $ nodeyard release LEASE                       give them back

Beside Zuul, on the ZooKeeper of the old configuration file:
  $ nodeyard -c /etc/nodepool/nodepool.yaml config-validate --strict
  $ nodeyard -c /etc/nodepool/nodepool.yaml launcher

Where commands look for the tree: the ZooKeeper of -c FILE; else the Nodeyard that runs on --state DIR
(NODEYARD_STATE; /var/lib/nodeyard for root, else ~/.local/state/nodeyard); else the ZooKeeper of the default
configuration (/etc/nodeyard/nodepool.yaml, else /etc/nodepool/nodepool.yaml).
Without a tree: the API at NODEYARD_URL (http://HOST:PORT, https://HOST, or the path of an http.sock), with the token in NODEYARD_TOKEN or
in the file NODEYARD_TOKEN_FILE. -c and --state come before it.`;

const EXIT_TEXT = `Exit codes: ${Object.entries(EXIT_CODES)
  .map(([code, meaning]) => `${code} ${meaning}`)
  .join("\n            ")}
`;

/** Options that may stand before the command, or after it unless the command has an option of that name. */
function globalOptions(): readonly Option[] {
  return [
    new Option("-c, --config <file>", "configuration (nodepool.yaml)"),
    new Option("-s, --secure <file>", "file with the credentials that nodepool.yaml refers to"),
    new Option("--state <dir>", "state folder"),
    new Option("--debug", "log debug messages, too"),
    new Option(
      "--log-format <format>",
      "default: text on a terminal or in a file, journald where stderr is systemd's journal, else json",
    ).choices(["text", "json", "journald"]),
    new Option("--log-level <levels>", "LEVEL or AREA=LEVEL, separated by commas; default: info"),
    new Option(
      "--log-file <file>",
      "log to this file instead of stderr; created again when it was moved away",
    ),
  ];
}

/** Global options that stand after the command: `nodeyard list -c FILE`. */
class Inherited {
  readonly #options = new WeakSet<Option>();
  #command: Command | null = null;

  /** Lets a command and its subcommands accept the global options for which they have no option of their own. */
  add(command: Command): void {
    // A command's own option of that name wins: `--state` of lists is a filter.
    const names = new Set(command.options.map(({ long }) => long));
    for (const option of globalOptions()) {
      if (names.has(option.long)) continue;
      this.#options.add(option.hideHelp());
      command.addOption(option);
    }
    for (const inner of command.commands) this.add(inner);
  }

  /** The command that runs, as soon as it is known. Its parents' options count, too. */
  from(command: Command): void {
    this.#command = command;
  }

  /** The values given after the command, of which the innermost counts. Those before it are the program's own. */
  values(): GlobalOptions {
    const values: Record<string, unknown> = {};
    for (let command = this.#command; command !== null; command = command.parent)
      for (const option of command.options)
        if (this.#options.has(option))
          values[option.attributeName()] ??= command.getOptionValue(option.attributeName());
    return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
  }
}

/** A program that has loaded at most one command was asked for what all of them are needed for: help lists the arguments of all. */
class NeedsAll extends Error {}

/** Every command as its help has it. */
export async function describeProgram(machine: Machine): Promise<Described> {
  const none = () => {};
  const io: Io = { out: none, err: none, isTerminal: false, ask: async () => undefined, columns: 80 };
  return describe(await createProgram({ io, machine }, { quick: false }));
}

/**
 * The command line. Actions throw; `main` turns errors into a line and an exit code. A quick program knows only the names of its
 * commands, loads the one that runs, and throws NeedsAll instead of printing help.
 */
async function createProgram(
  session: Omit<Session, "options">,
  { quick }: { readonly quick: boolean },
): Promise<Command> {
  const { io } = session;
  const program = new Command("nodeyard")
    .description("Nodeyard hands out test machines, all together or not at all.")
    .version(`Nodeyard version: ${VERSION}`, "--version", "print the version")
    // A command may have an option of the same name, as the filter --state of lists.
    .enablePositionalOptions()
    .addHelpText("after", EXAMPLES)
    .helpOption("-h, --help", "print this help, or the help of a command")
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: io.out,
      writeErr: io.err,
      getOutHelpWidth: () => io.columns,
      getErrHelpWidth: () => io.columns,
      outputError: (text, write) => write(usageLine(text)),
    });
  for (const option of globalOptions()) program.addOption(option);
  const inherited = new Inherited();
  const inner: Session = {
    ...session,
    options: () => ({ ...inherited.values(), ...program.opts<GlobalOptions>() }),
  };
  program.hook("preAction", async (_, command) => {
    inherited.from(command);
    refuseIdle(command);
    const { logLevel } = inner.options();
    // Commands without a log check it, too: a misspelt level must not pass in one and be refused in another.
    if (logLevel !== undefined) (await import("./log.ts")).levelsOf(logLevel);
  });
  if (quick)
    program
      .configureHelp({
        formatHelp: () => {
          throw new NeedsAll();
        },
      })
      .hook("preSubcommand", async (_, command) => {
        const entry = COMMANDS.find(({ name }) => name === command.name());
        if (entry?.whole) throw new NeedsAll();
        (await entry?.load())?.(command, inner);
        inherited.add(command);
      });
  for (const { name, summary, load } of COMMANDS) {
    const command = program.command(name).description(summary);
    if (quick) continue;
    (await load())(command, inner);
    inherited.add(command);
  }
  return program;
}

/** Throws UsageError for an option without effect: one whose help begins with "with --OTHER", where that is not given. */
function refuseIdle(command: Command): void {
  const isGiven = (option: Option) => command.getOptionValueSource(option.attributeName()) === "cli";
  for (const option of command.options.filter(isGiven)) {
    const other = /^with (--[a-z-]+)/.exec(option.description)?.[1];
    if (other === undefined || command.options.some((one) => one.long === other && isGiven(one))) continue;
    throw new UsageError(`${option.long} has no effect without ${other}: add that, or leave it out`);
  }
}

/** Commander's words in one line, with where to look. */
function usageLine(text: string): string {
  const problem = text
    .replace(/^error: /, "")
    .trim()
    .replace(/\.?\s*\n\s*/g, " ");
  return `nodeyard: ${problem}; see "nodeyard --help" or "nodeyard COMMAND --help"\n`;
}
