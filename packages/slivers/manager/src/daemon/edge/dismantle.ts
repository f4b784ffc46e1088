import { readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AccountSockets } from "../../api/edge/account-sockets.ts";
import { AlreadyRunningError } from "../../errors.ts";
import {
  type Belonging,
  belongings,
  dismantle as dismantleMachine,
} from "../../isolation/lxc/edge/belongings.ts";
import { removeOwn, type SliverMachine } from "../../isolation/lxc/edge/machine.ts";
import { MACHINE_LOCK, OWN_IDS } from "../../isolation/lxc/names.ts";
import type { DaemonConfig } from "../config.ts";
import { lockFolder, lockMachine } from "./lock.ts";
import { readerFolder } from "./start.ts";

/**
 * Files of a daemon in its state folder, with an incomplete node id and further files of SQLite; others are not ours to remove. The node id
 * is removed too, because it was made for slivers.
 */
const STATE_FILE =
  /^(?:node-id(?:\.\d+)?|state\.(?:0\.json|1\.json|draft)|audit(?:-slivers)?\.log(?:\.1)?|lock\.sqlite(?:-.*)?)$/;

/** What dismantling removes and what it keeps. */
export interface Dismantling {
  /** In the order of removal. */
  readonly remove: readonly Belonging[];
  /** Things that have to do with slivers and stay, with the reason, for the operator. */
  readonly keep: readonly string[];
}

/** The plan of `dismantle`. Changes nothing. Throws CommandError. */
export async function dismantling(
  config: DaemonConfig,
  machine: SliverMachine,
  signal: AbortSignal,
): Promise<Dismantling> {
  const { isolation, stateFolder, runFolder, control } = config;
  const state = await present(stateFolder, (name) => STATE_FILE.test(name));
  // Folders of accounts with their sockets belong to the daemon.
  const run = await present(runFolder, () => true);
  const { keysFile } = control;
  const keys =
    keysFile === undefined ? [] : await present(dirname(keysFile), (name) => name === basename(keysFile));
  const keep = [
    ...(isolation.cache === undefined
      ? []
      : [`${isolation.cache}: archives of images, in a folder that was named`]),
    ...("folder" in isolation.pool
      ? [`${isolation.pool.folder}: the file system, with quotas turned on`]
      : []),
    "packages that were installed for slivers",
  ];
  const files = [...run, ...keys, ...state].map((name) => ({ kind: "file", name }) as const);
  return { remove: [...(await belongings(machine.options, signal)), ...files], keep };
}

/**
 * Ends every sliver and restores the machine to its state before the first one. The daemon's own state is removed last, so that an
 * interrupted run can be repeated. Throws AlreadyRunningError while a daemon runs, and MachineError when something could not be removed.
 */
export async function dismantle(
  config: DaemonConfig,
  machine: SliverMachine,
  signal: AbortSignal,
): Promise<void> {
  const { stateFolder, runFolder, control } = config;
  if ((await dismantling(config, machine, signal)).remove.length === 0) return;
  using _lock = lockFolder(stateFolder);
  await endSlivers(machine, signal);
  const sockets = new AccountSockets(runFolder, () => {
    throw new Error("no callers are accepted");
  });
  await sockets.prepare();
  await sockets.close();
  // Left by a daemon that was killed.
  await removeOwn(runFolder, Object.keys(OWN_IDS).map(readerFolder));
  if (control.keysFile !== undefined) await rm(control.keysFile, { force: true });
  await removeOwn(
    stateFolder,
    (await readdir(stateFolder)).filter((name) => STATE_FILE.test(name)),
  );
}

/** Ends the slivers unless another daemon manages the machine. A daemon that could never start has no slivers to end. */
async function endSlivers(machine: SliverMachine, signal: AbortSignal): Promise<void> {
  using held = new DisposableStack();
  try {
    held.use(lockMachine(MACHINE_LOCK));
  } catch (error) {
    const isNothing =
      error instanceof AlreadyRunningError && (await belongings(machine.options, signal)).length === 0;
    if (isNothing) return;
    throw error;
  }
  await dismantleMachine(machine, signal);
  await rm(MACHINE_LOCK, { recursive: true, force: true });
}

/** Paths of the files there; none when there is no folder. */
async function present(folder: string, ours: (name: string) => boolean): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names.filter(ours).map((name) => join(folder, name));
}
