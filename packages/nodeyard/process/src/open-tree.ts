import {
  type ConfigFiles,
  connectionString,
  type DriverRegistry,
  type ZookeeperConfig,
} from "@nodeyard/config";
import { type Clock, messageOf } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import type { Machine } from "@nodeyard/telemetry/machine";
import {
  attachEmbeddedTree,
  connectZooKeeperTree,
  type Session,
  socketPath,
  type Tree,
  type WriteEnded,
} from "@nodeyard/tree";
import { fileExists, isSocket, readText } from "./edge/files.ts";
import { ProcessError } from "./errors.ts";

/** Where a configuration is looked for that nobody names: the first that there is counts. The second place is Nodepool's. */
export const CONFIG_PLACES = ["/etc/nodeyard/nodepool.yaml", "/etc/nodepool/nodepool.yaml"] as const;

/** The configuration to use where none is named; the first place where there is none. */
export function defaultConfig(exists: (path: string) => boolean = fileExists): string {
  return CONFIG_PLACES.find(exists) ?? CONFIG_PLACES[0];
}

/** A person waits: a tree that does not answer within this is not there. Milliseconds. */
const CONNECT_MS = 10_000;

/** Where a tree is looked for. */
export interface TreeLocation {
  /** Looked into when no ZooKeeper is named. */
  readonly stateFolder: string;
  /** A configuration that was named: its ZooKeeper is used when it has one. */
  readonly files?: ConfigFiles;
  /** Is told the first error of a configuration that cannot be loaded, though the tree can be found by it; absent: that rejects. */
  readonly onBroken?: (why: string) => void;
  /** For commands that must not write, not even to the servers' logs. */
  readonly readsOnly?: boolean;
}

/**
 * Opens the tree that the user means: the ZooKeeper of the named configuration, else the Nodeyard that runs on the state folder, else
 * the ZooKeeper of the default configuration. One client reaches all of them. `drivers`: the drivers that the process has
 * loaded; without it, missing drivers are accepted. `log` gets a line for each write.
 */
export async function openTree(
  place: TreeLocation,
  machine: Machine,
  drivers?: DriverRegistry,
  log?: Log,
): Promise<Tree> {
  const socket = socketPath(place.stateFolder);
  const path = defaultConfig();
  const files = place.files ?? (isSocket(socket) || !fileExists(path) ? undefined : { path });
  if (files !== undefined) {
    // Schema, YAML and drivers are loaded where a configuration is read, and a command on a tree beside it reads none.
    const { zookeeperOf, anyDriver } = await import("./open-config.ts");
    const zookeeper = await zookeeperOf(files, machine, drivers ?? anyDriver(), place.onBroken);
    if (zookeeper.servers.length > 0)
      return connectZooKeeper(zookeeper, machine, log, CONNECT_MS, place.readsOnly);
  }
  return connectEmbedded(place, machine, log);
}

/** Logs each write at level debug. */
export function writesTo(log: Log | undefined): (write: WriteEnded) => void {
  return ({ what, path, operations, ms, error }) =>
    log?.debug(
      {
        write: what,
        path,
        operations,
        ms: Math.round(ms),
        ...(error && { code: error.code, error: error.message }),
      },
      "a write to the tree ended",
    );
}

/**
 * A tree on the servers of the configuration. Rejects with ProcessError when no server lets us in within the time, or our part of
 * the tree is not there: creating the chroot could hide a misspelt one.
 */
export async function connectZooKeeper(
  config: ZookeeperConfig,
  machine: Machine,
  log?: Log,
  deadlineMs = CONNECT_MS,
  readsOnly = false,
): Promise<Tree> {
  // The chroot is given apart.
  const servers = connectionString({ ...config, chroot: "" });
  const tree = await connect(config, servers, machine, log, deadlineMs, readsOnly);
  if (config.chroot === "" || (await tree.stat("/")) !== undefined) return tree;
  await tree.close();
  throw new ProcessError(
    "process.no_chroot",
    `the chroot ${config.chroot} does not exist on ${servers}: create it there (zkCli.sh create ${config.chroot}), or correct chroot in zookeeper-servers`,
  );
}

/** Rejects with ProcessError when no server answers in time; the message has what the system said. */
async function connect(
  config: ZookeeperConfig,
  servers: string,
  { clock, random }: Machine,
  log: Log | undefined,
  connectDeadlineMs: number,
  readsOnly: boolean,
): Promise<Tree> {
  try {
    const tree = await connectZooKeeperTree({
      servers,
      chroot: config.chroot,
      clock,
      random,
      sessionTimeoutMs: config.timeoutMs,
      connectDeadlineMs,
      readsOnly,
      onWrite: writesTo(log),
      ...(config.tls === null ? {} : { tls: tlsOf(config.tls) }),
    });
    if (log !== undefined) noteOutages(tree, servers, clock, log);
    return tree;
  } catch (error) {
    if (error instanceof ProcessError) throw error;
    const remedy =
      config.tls === null
        ? "zookeeper-servers, and zookeeper-tls if they want TLS,"
        : "zookeeper-servers and -tls";
    throw new ProcessError(
      "process.no_zookeeper",
      `no ZooKeeper answers at ${servers} within ${connectDeadlineMs / 1000} s (${reasonOf(error)}); see ${remedy} in the configuration`,
      { cause: error },
    );
  }
}

/**
 * Logs the begin and the end of an outage of the tree, which explains other errors in between. Once each, however often the
 * session tries.
 */
function noteOutages(tree: Tree, servers: string, clock: Clock, log: Log): void {
  let since: number | undefined;
  let isLost = false;
  tree.onSession((session) => {
    const { state } = session;
    if (state === "suspended" && since === undefined) {
      since = clock.monotonic();
      log.warn(
        { servers },
        `lost the connection to ZooKeeper; will retry until it is back${whyAway(session)}`,
      );
    } else if (!isLost && isDataLost(session)) {
      log.error({ servers }, `ZooKeeper is back, and cannot be used${whyAway(session)}`);
    } else if (state === "connected" && since !== undefined) {
      log.info({ servers, ms: Math.round(clock.monotonic() - since) }, "connected to ZooKeeper again");
      since = undefined;
    }
    isLost = isDataLost(session);
  });
}

/** Why the tree is away, to be put behind what follows from it; with the remedy where it does not come back by itself. */
export function whyAway(session: Session): string {
  const { cause } = session;
  if (cause === undefined) return "";
  const remedy =
    'start it with its data; or go on as "Restore a backup of ZooKeeper" ("nodeyard docs upgrade-and-go-back") says, and restart all launchers, builders and Zuul';
  return `: ${messageOf(cause)}${isDataLost(session) ? `: ${remedy}` : ""}`;
}

function isDataLost({ cause }: Session): boolean {
  return (cause as { readonly code?: unknown } | undefined)?.code === "zookeeper.data_lost";
}

/** Read once: renewed files count from the next start. */
export function tlsOf({ cert, key, ca }: NonNullable<ZookeeperConfig["tls"]>) {
  return {
    cert: readText(cert, "zookeeper-tls cert"),
    key: readText(key, "zookeeper-tls key"),
    ca: readText(ca, "zookeeper-tls ca"),
    // Zuul's and the old launcher's clients do not compare names, so certificates in use may carry none.
    verifyHost: false,
  };
}

/** The tree of the Nodeyard on a state folder, by its socket. Rejects with ProcessError where none runs. */
async function connectEmbedded(
  { stateFolder, readsOnly = false }: TreeLocation,
  { clock, random }: Machine,
  log: Log | undefined,
): Promise<Tree> {
  const onWrite = writesTo(log);
  try {
    return await attachEmbeddedTree({
      folder: stateFolder,
      clock,
      random,
      connectDeadlineMs: CONNECT_MS,
      readsOnly,
      onWrite,
    });
  } catch (error) {
    const socket = socketPath(stateFolder);
    const why = isSocket(socket)
      ? `nothing answers on ${socket} (${reasonOf(error)}): the Nodeyard there has stopped or hangs`
      : `no Nodeyard runs on the state folder ${stateFolder}`;
    throw new ProcessError(
      "process.no_tree",
      `${why}; start one with "nodeyard up", name its state folder with --state DIR, or a configuration with zookeeper-servers with -c FILE`,
      { cause: error },
    );
  }
}

/** The innermost cause says what the system said. */
function reasonOf(error: unknown): string {
  let innermost = error;
  while (innermost instanceof Error && innermost.cause !== undefined) innermost = innermost.cause;
  return messageOf(innermost);
}
