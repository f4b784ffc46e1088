import type { ConfigFiles } from "@nodeyard/config";
import { abortable } from "@nodeyard/driver";
import { backoff, defined, messageOf, sleep } from "@nodeyard/runtime";
import type { Log, ProcessLog } from "@nodeyard/telemetry";
import type { Machine } from "@nodeyard/telemetry/machine";
import type { Tree } from "@nodeyard/tree";
import { BuilderRole } from "./builder-role.ts";
import { Drivers } from "./driver-registry.ts";
import { makeStateFolder } from "./edge/files.ts";
import { loadModule } from "./edge/load-module.ts";
import { ProcessError } from "./errors.ts";
import { followConfig } from "./follow-config.ts";
import { Front, type FrontWish, listenAddresses } from "./front.ts";
import { LauncherRole } from "./launcher-role.ts";
import { logFindings, openConfig } from "./open-config.ts";
import { openTree } from "./open-tree.ts";
import type { Role } from "./role.ts";
import type { RoleParts } from "./role-parts.ts";
import type { Stoppable } from "./until-stopped.ts";

/**
 * Tries before a daemon gives up on a tree that never answered: about five minutes, with the ten seconds of each try and pauses
 * of up to ten.
 */
const ATTEMPTS = 20;

/** What a daemon is started with. `stateFolder` is created by those that write to it. */
export interface DaemonOptions {
  readonly stateFolder: string;
  readonly files: ConfigFiles;
  /** Where it can be looked at; absent: nowhere. */
  readonly front?: FrontWish;
}

export interface BuilderDaemonOptions extends DaemonOptions {
  /** Builds at once; default 1. */
  readonly buildWorkers?: number;
  /** Uploads at once; default 4. */
  readonly uploadWorkers?: number;
}

/**
 * A launcher on the tree of its configuration. Resolves when its pools are registered. An abort of `stopping` ends the waiting
 * for a tree, with its reason, and that for providers. Rejects with ProcessError, ConfigRefused or ListenError; then nothing is
 * left open.
 */
export function startLauncher(
  options: DaemonOptions,
  machine: Machine,
  log: ProcessLog,
  stopping?: AbortSignal,
): Promise<Stoppable> {
  const { stateFolder } = options;
  const start = (parts: RoleParts) => LauncherRole.start({ ...parts, stateFolder }, stopping);
  return startDaemon(options, machine, log, stopping, start);
}

/**
 * A builder on the tree of its configuration. Resolves when it works. An abort of `stopping` ends the waiting for a tree, with its
 * reason.
 */
export function startBuilder(
  { buildWorkers, uploadWorkers, ...options }: BuilderDaemonOptions,
  machine: Machine,
  log: ProcessLog,
  stopping?: AbortSignal,
): Promise<Stoppable> {
  const workers = {
    ...defined({ buildWorkers, uploadWorkers }),
  };
  const start = (parts: RoleParts) => BuilderRole.start({ ...parts, ...workers });
  return startDaemon(options, machine, log, stopping, start);
}

/**
 * In this order: configuration, HTTP, tree, role, watch of the files. HTTP before the tree, so that a supervisor sees a daemon
 * that waits for its ZooKeeper as not ready rather than gone.
 */
async function startDaemon(
  options: DaemonOptions,
  machine: Machine,
  log: ProcessLog,
  stopping: AbortSignal | undefined,
  start: (parts: RoleParts) => Promise<Role>,
): Promise<Stoppable> {
  const { files, stateFolder } = options;
  const drivers = new Drivers(loadModule, { log: log.area("driver") });
  const { config, warnings } = await openConfig(files, machine, drivers);
  log.setLevels(config.logLevels);
  logFindings(log, warnings);
  // The socket lies in it.
  if (options.front?.socket === true) makeStateFolder(stateFolder);
  const places = listenAddresses(options.front, config.webapp, stateFolder);
  const front = await Front.open(places, { machine, log, drivers, config });
  let tree: Tree | undefined;
  try {
    tree = await connected(
      () => openTree(options, machine, drivers, log.area("tree")),
      machine,
      log,
      stopping,
    );
    const parts = { machine, tree, config, files, drivers, log, front };
    const role = await start(parts);
    const watch = followConfig(parts, (next) => role.reconfigure(next));
    return {
      async reload() {
        await watch.check(true);
        front.reloadTls();
      },
      stuck: () => front.stuck(),
      async close(graceMs) {
        watch.close();
        // The role first: it writes to the tree, and the front shows how it ends.
        await role.close(graceMs);
        await front.close();
        await parts.tree.close();
      },
    };
  } catch (error) {
    await front.close();
    await tree?.close();
    throw error;
  }
}

/**
 * Connects to the tree. A daemon is often started before its ZooKeeper, so a server that does not answer is tried again; an error of the
 * configuration rejects at once. Rejects with the reason of `stopping` when that aborts first.
 */
async function connected(
  open: () => Promise<Tree>,
  { clock, random }: Machine,
  log: Log,
  stopping: AbortSignal | undefined,
): Promise<Tree> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await unlessStopped(open(), stopping);
    } catch (error) {
      // All other errors would be the same at the next try.
      const isAbsent =
        error instanceof ProcessError &&
        (error.code === "process.no_zookeeper" || error.code === "process.no_tree");
      if (!isAbsent || attempt + 1 >= ATTEMPTS) throw error;
      log.warn({ attempt: attempt + 1, of: ATTEMPTS }, messageOf(error));
      await sleep(clock, backoff(random, attempt, 500, 10_000), stopping);
    }
  }
}

/** The tree, or a rejection as soon as the start is aborted: a connection may take ten seconds. */
async function unlessStopped(opening: Promise<Tree>, stopping: AbortSignal | undefined): Promise<Tree> {
  if (stopping === undefined) return opening;
  try {
    return await abortable(opening, stopping);
  } catch (error) {
    // The start was aborted: close the connection that has just been made.
    if (stopping.aborted)
      void opening.then(
        (tree) => tree.close(),
        () => {},
      );
    throw error;
  }
}
