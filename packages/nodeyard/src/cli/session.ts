import type { Machine } from "../machine/index.ts";
import type { OperationHandles } from "../operations/index.ts";
import {
  type ConfigFiles,
  DEFAULT_CONFIG,
  openTree,
  stateFolder,
  type TreeLocation,
} from "../process/index.ts";
import { UsageError } from "./errors.ts";
import type { Io } from "./io.ts";
import { patiently } from "./patience.ts";

/** Options that stand before the command. */
export interface GlobalOptions {
  readonly config?: string;
  readonly secure?: string;
  readonly state?: string;
  readonly debug?: boolean;
  readonly logFormat?: "json" | "text";
}

/** What every command is given. */
export interface Session {
  readonly io: Io;
  readonly machine: Machine;
  readonly options: () => GlobalOptions;
}

export function stateOf({ machine, options }: Session): string {
  if (options().state === "")
    throw new UsageError('--state "" names no folder; an example: --state .nodeyard');
  return stateFolder({ option: options().state, ...machine });
}

/** The configuration to run by: `-c`, else where the old launcher keeps it. */
export function filesOf({ options }: Session): ConfigFiles {
  const { config = DEFAULT_CONFIG, secure } = options();
  return secure === undefined ? { path: config } : { path: config, securePath: secure };
}

/** Where the tree is looked for: `-c` names it, else a Nodeyard that runs on the state folder. */
export function placeOf(session: Session): TreeLocation {
  const { config, secure } = session.options();
  if (config === undefined && secure === undefined) return { stateFolder: stateOf(session) };
  return { stateFolder: stateOf(session), files: filesOf(session) };
}

/** Runs `command` with a connection to the tree, and ends that whatever happens. */
export async function withTree<T>(
  session: Session,
  command: (handles: OperationHandles) => Promise<T>,
): Promise<T> {
  const { machine } = session;
  const { clock, random } = machine;
  const tree = await openTree(placeOf(session), machine);
  try {
    return await command({ tree, clock, random });
  } finally {
    // What the command did is done; a server that has gone meanwhile ends the session by itself.
    await patiently(clock, tree.close()).catch(() => {});
  }
}
