import type { ConfigFiles, ConfigWatch } from "@nodeyard/config";
import { defined, messageOf } from "@nodeyard/runtime";
import type { Log, ProcessLog } from "@nodeyard/telemetry";
import type { Machine } from "@nodeyard/telemetry/machine";
import {
  type EmbeddedTree,
  openEmbeddedTree,
  socketPath,
  startTreeServer,
  type TcpOptions,
  type TreeServer,
} from "@nodeyard/tree";
import { BuilderRole, wantsBuilder } from "./builder-role.ts";
import { Drivers } from "./driver-registry.ts";
import { backupsOf } from "./edge/backups.ts";
import { makeStateFolder } from "./edge/files.ts";
import { loadModule } from "./edge/load-module.ts";
import { ProcessError } from "./errors.ts";
import { followConfig } from "./follow-config.ts";
import { Front, type FrontWish, listenAddresses } from "./front.ts";
import { LauncherRole } from "./launcher-role.ts";
import { logFindings, openConfig } from "./open-config.ts";
import { writesTo } from "./open-tree.ts";

/** What `nodeyard up` is given. The configuration must name no ZooKeeper. */
export interface UpOptions {
  readonly stateFolder: string;
  readonly files: ConfigFiles;
  /** Lets clients in by TCP besides the Unix socket. */
  readonly listen?: TcpOptions;
  /** Where it can be looked at; absent: nowhere. */
  readonly front?: FrontWish;
  /** The tree of the state folder, when the caller has opened it already; absent: it is opened here. Closed with the rest. */
  readonly tree?: EmbeddedTree;
}

/** Everything in one process, running: a Stoppable. */
export interface Up {
  /** Where clients find the tree: `unix:/path`, `host:port`. */
  readonly addresses: readonly string[];
  /** One that the configuration had at the start, as an example; undefined: it had none. */
  readonly label: string | undefined;
  /** Resolves when the tree cannot be written any more: only a restart helps then. */
  readonly failed: Promise<ProcessError>;
  /** Reads the configuration and certificates again. Never rejects. */
  reload(): Promise<void>;
  stuck(): string | undefined;
  close(graceMs: number): Promise<void>;
}

/**
 * Holds a state folder, and opens the tree in it. Rejects with StoreRefused where another process does, with ProcessError where
 * the folder cannot be used.
 */
export async function openState(
  stateFolder: string,
  { clock, random }: Machine,
  log?: Log,
): Promise<EmbeddedTree> {
  makeStateFolder(stateFolder);
  return openEmbeddedTree({ folder: stateFolder, clock, random, onWrite: writesTo(log) });
}

/**
 * All roles in one process on an embedded tree. Resolves when its pools are registered and clients are let in. An abort of `stopping`
 * ends the waiting for providers.
 */
export async function startUp(
  options: UpOptions,
  machine: Machine,
  log: ProcessLog,
  stopping?: AbortSignal,
): Promise<Up> {
  const { stateFolder, files, listen } = options;
  const drivers = new Drivers(loadModule, { log: log.area("driver") });
  const { config, warnings } = await openConfig(files, machine, drivers);
  log.setLevels(config.logLevels);
  logFindings(log, warnings);
  if (config.zookeeper.servers.length > 0)
    throw new ProcessError(
      "process.two_trees",
      `${files.path} names zookeeper-servers: start it with "nodeyard launcher -c ${files.path}", or remove them to use the embedded tree`,
    );
  const tree = options.tree ?? (await openState(stateFolder, machine, log.area("tree")));
  const failed = new Promise<ProcessError>((resolve) => {
    tree.core.onFailure((error) => resolve(storeLost(stateFolder, error)));
  });
  const opened: Opened = {};
  try {
    const places = listenAddresses(options.front, config.webapp, stateFolder);
    const front = await Front.open(places, {
      machine,
      log,
      drivers,
      config,
      backup: backupsOf(tree, stateFolder),
    });
    opened.front = front;
    // First: while a provider is slow to open, clients can already see and ask.
    opened.server = await serve(tree, options, machine, listen);
    const parts = { machine, tree, config, files, drivers, log, front, stateFolder };
    const launcher = await LauncherRole.start(parts, stopping);
    opened.launcher = launcher;
    // The configuration that came last, which a builder that is just starting has to catch up with.
    let wanted = config;
    const build = async () => {
      // One builder for the life of the process: without images it idles.
      if (opened.builder !== undefined || !wantsBuilder(wanted) || opened.closing || stopping?.aborted)
        return;
      const by = wanted;
      const { view } = launcher.known;
      opened.builder = await BuilderRole.start({ ...parts, config: by, view });
      if (wanted !== by)
        await opened.builder
          .reconfigure(wanted)
          .catch((error) => log.error({ error: messageOf(error) }, "cannot apply the changed configuration"));
    };
    opened.watch = followConfig(parts, (next) => {
      wanted = next;
      const applied = Promise.all([launcher, opened.builder].map((role) => role?.reconfigure(next)));
      // Diskimages that come later find their builder, too.
      opened.building = opened.building
        ?.then(build)
        .catch((error) => log.error({ error: messageOf(error) }, "cannot start the builder"));
      return applied;
    });
    const first = build();
    opened.building = first.catch(() => {});
    await first;
  } catch (error) {
    // Nothing is under way yet that deserves time.
    await close(tree, opened, 0);
    throw error;
  }
  return {
    addresses: opened.server.addresses,
    label: config.labels.keys().next().value,
    failed,
    async reload() {
      await opened.watch?.check(true);
      opened.front?.reloadTls();
    },
    stuck: () => opened.front?.stuck(),
    close: (graceMs) => close(tree, opened, graceMs),
  };
}

/** What has been opened so far, to be closed in any case; each is absent until it runs. */
interface Opened {
  closing?: boolean;
  /** Of the builder, the first or one that starts after the rest; absent until the launcher runs. */
  building?: Promise<void> | undefined;
  front?: Front;
  server?: TreeServer;
  watch?: ConfigWatch;
  launcher?: LauncherRole;
  builder?: BuilderRole;
}

/** The disk failed: the tree answers no more writes, so the process ends, and a restart reads what was acknowledged. */
function storeLost(stateFolder: string, error: Error): ProcessError {
  const why = messageOf(error.cause ?? error);
  const remedy = "acknowledged writes are kept; free disk space or repair the disk, then start again";
  return new ProcessError(
    "process.store_lost",
    `the tree in ${stateFolder} cannot be written (${why}): ${remedy}`,
    { cause: error },
  );
}

/** Lets clients in. The launcher of this process needs none of it: it works on the tree directly. */
function serve(
  tree: EmbeddedTree,
  { stateFolder }: UpOptions,
  { clock }: Machine,
  tcp: TcpOptions | undefined,
): Promise<TreeServer> {
  const socket = socketPath(stateFolder);
  return startTreeServer({ core: tree.core, clock, socket, ...defined({ tcp }) });
}

/** The launcher first: while it ends, its clients can still see what becomes of their nodes. */
async function close(tree: EmbeddedTree, opened: Opened, graceMs: number): Promise<void> {
  opened.closing = true;
  opened.watch?.close();
  const { front, server, launcher, building } = opened;
  // Both at once: together they have no longer than each alone. The view is the launcher's. One that starts just now ends as it has.
  const built = (building ?? Promise.resolve()).then(() => opened.builder?.close(graceMs));
  await launcher?.close(graceMs);
  await built;
  await front?.close();
  await server?.close();
  await tree.close();
}
