import type { DriverRegistry } from "@nodeyard/config";
import type { OperationHandles } from "@nodeyard/operations";
import { type ConfigFiles, defaultConfig, openTree, readText, type TreeLocation } from "@nodeyard/process";
import type { LogFormat } from "@nodeyard/telemetry";
import type { Machine } from "@nodeyard/telemetry/machine";
import { CommandError, UsageError } from "./errors.ts";
import { patiently } from "./patience.ts";

/** Where a command writes and asks. Output for programs goes to `out`, everything else to `err`. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  /** Whether stderr is a terminal: people read the log there, not machines. */
  readonly isTerminal: boolean;
  /** Asks the user and returns the answer; undefined: the input ended without one. */
  ask(question: string): Promise<string | undefined>;
  /** Columns for help texts. */
  readonly columns: number;
}

/** Options that stand before the command. */
export interface GlobalOptions {
  /** Path of nodepool.yaml; absent: the state folder names the tree. */
  readonly config?: string;
  /** Path of the secure file; absent: none is read. */
  readonly secure?: string;
  /** Path of the state folder. */
  readonly state?: string;
  readonly debug?: boolean;
  readonly logFormat?: LogFormat;
  /** Levels as `--log-level` has them. */
  readonly logLevel?: string;
  /** Absent: stderr. */
  readonly logFile?: string;
}

/** What every command is given. */
export interface Session {
  readonly io: Io;
  readonly machine: Machine;
  /** Those of the command that runs; known only from its action on. */
  readonly options: () => GlobalOptions;
}

/** The state folder, which need not exist. Throws UsageError for `--state ""`, as an unset variable in a script leaves it. */
export function stateOf({ machine, options }: Session): string {
  if (options().state === "")
    throw new UsageError('--state "" names no folder; an example: --state .nodeyard');
  return stateFolder({ option: options().state, ...machine });
}

/** The person whom the command runs for: the owner of leases, and who holds nodes and makes tokens. */
export function personOf({ machine }: Session): string {
  return `${machine.user}@${machine.hostname}`;
}

/** The configuration to run by: `-c`, else the default one. Neither file need exist. */
export function filesOf({ options }: Session): ConfigFiles {
  const { config = defaultConfig(), secure } = options();
  return secure === undefined ? { path: config } : { path: config, securePath: secure };
}

/** Where the tree is looked for: `-c` names it, else a Nodeyard that runs on the state folder. */
export function placeOf(session: Session): TreeLocation {
  const { config, secure } = session.options();
  if (config === undefined && secure === undefined) return { stateFolder: stateOf(session) };
  return { stateFolder: stateOf(session), files: filesOf(session) };
}

/**
 * The API that commands are to use: NODEYARD_URL, with NODEYARD_TOKEN or NODEYARD_TOKEN_FILE, unless options name the tree.
 * NODEYARD_STATE does not count as such an option. Throws ProcessError for a token file that cannot be read.
 */
export function addressOf({
  options,
  machine: { env },
}: Session): { readonly url: string; readonly token: string | undefined } | undefined {
  const { config, secure, state } = options();
  const url = given(env.NODEYARD_URL);
  if (url === undefined || (config ?? secure ?? state) !== undefined) return undefined;
  const file = given(env.NODEYARD_TOKEN_FILE);
  const inFile = file === undefined ? undefined : readText(file, "the token").trim();
  return { url, token: given(env.NODEYARD_TOKEN) ?? inFile };
}

/** For what REST v1 has no route. */
function needsTree(): CommandError {
  return new CommandError(
    "cli.needs_tree",
    "the API that NODEYARD_URL names has no route for this: run it where the tree is, with -c FILE or --state DIR",
  );
}

/** Command lines that have said that the configuration is broken. */
const warned = new WeakSet<Session>();

/**
 * Runs `command` with a connection to the tree, and closes it in any case. `drivers`: for the check of a configuration with `-c`; `readsOnly`:
 * the connection refuses writes, and none of it is in the servers' logs.
 * Rejects with CommandError where NODEYARD_URL names an API, with ProcessError where no tree answers within ten seconds. A configuration with
 * mistakes is a warning, unless what it says of the tree cannot be read.
 */
export async function withTree<T>(
  session: Session,
  command: (handles: OperationHandles) => Promise<T>,
  { drivers, readsOnly = false }: { readonly drivers?: DriverRegistry; readonly readsOnly?: boolean } = {},
): Promise<T> {
  const { machine } = session;
  const { clock, random } = machine;
  if (addressOf(session) !== undefined) throw needsTree();
  const onBroken = (why: string) => {
    if (warned.has(session)) return;
    warned.add(session);
    session.io.err(`nodeyard: ${why}; no launcher can load the file, and this command needs only its tree\n`);
  };
  const tree = await openTree({ ...placeOf(session), onBroken, readsOnly }, machine, drivers);
  try {
    return await command({ tree, clock, random });
  } finally {
    // The command has succeeded. If the server does not answer any more, it ends the session by its timeout.
    await patiently(clock, tree.close()).catch(() => {});
  }
}

/** What decides on the state folder. Its name is short: a Unix socket's path holds 107 bytes (unix(7)). */
export interface StateFolderInput {
  /** `--state`. */
  readonly option: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly isRoot: boolean;
}

/** `--state`, NODEYARD_STATE, /var/lib/nodeyard for root, $XDG_STATE_HOME/nodeyard, ~/.local/state/nodeyard. */
export function stateFolder({ option, env, home, isRoot }: StateFolderInput): string {
  const named = option ?? given(env.NODEYARD_STATE);
  if (named !== undefined) return named;
  if (isRoot) return "/var/lib/nodeyard";
  // Relative values are to be ignored (XDG Base Directory Specification, "Basics").
  const xdg = given(env.XDG_STATE_HOME);
  return xdg?.startsWith("/") ? `${xdg}/nodeyard` : `${home}/.local/state/nodeyard`;
}

/** An empty variable counts as unset, as in a shell's `${NAME:-default}`. */
function given(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}
