import { type ConfigFiles, connectionString, type ZookeeperConfig } from "@nodeyard/config";
import { messageOf } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import type { Machine } from "@nodeyard/telemetry/machine";
import {
  type Forwarder,
  type LeavingTree,
  openLeaving,
  putBack,
  readDataFolder,
  type Stat,
  socketPath,
  startForwarder,
  type TcpOptions,
  type Tree,
  writeDataFolder,
} from "@nodeyard/tree";
import { fileExists, makeStateFolder } from "./edge/files.ts";
import { ProcessError } from "./errors.ts";
import { anyDriver, zookeeperOf } from "./open-config.ts";
import { connectZooKeeper, tlsOf } from "./open-tree.ts";
import type { Stoppable } from "./until-stopped.ts";

/** Znodes that are compared at once. */
const COMPARED = 1000;
/** A ZooKeeper that runs answers within this. Milliseconds. */
const ANSWER_MS = 1_000;

/** A tree that is to move to a ZooKeeper. */
export interface PromoteWish {
  readonly stateFolder: string;
  /** The configuration that launchers and builders will have, which names the ZooKeeper, and its TLS. */
  readonly files?: ConfigFiles;
  /** `host:port,host:port`, in place of the configuration's. */
  readonly to?: string;
  /** The `dataDir` of the ZooKeeper, which has never run. Not needed where the tree has moved already. */
  readonly data?: string;
  /** Where clients came by TCP, besides the Unix socket. */
  readonly listen?: TcpOptions;
}

/**
 * Moves the tree of a state folder on which no Nodeyard runs to a ZooKeeper that starts on it: znodes with their versions, sessions and
 * so locks. Waits until that ZooKeeper is up and has everything, and then serves the former addresses, where clients go on. After a crash the
 * tree is here, or is written there and refused here. Rejects with ProcessError, StoreRefused or MoveRefused.
 */
export async function startPromotion(
  wish: PromoteWish,
  machine: Machine,
  log: Log,
  stopping: AbortSignal,
): Promise<Stoppable> {
  const { stateFolder, data, listen } = wish;
  const config = await targetOf(wish, machine);
  const servers = connectionString(config);
  if (!fileExists(`${stateFolder}/tree.sqlite`))
    throw new ProcessError(
      "process.no_tree",
      `the state folder ${stateFolder} holds no tree; name another with --state DIR`,
    );
  const leaving = openLeaving(stateFolder, machine.clock.now());
  const arrived = Promise.withResolvers<void>();
  let forwarder: Forwarder | undefined;
  try {
    const { state, movedAt } = leaving;
    if (movedAt === undefined) await refuseIfUp(config, machine);
    // First, so that an address that is taken is told before anything is written.
    forwarder = await startForwarder({
      servers,
      passwords: leaving.passwords,
      clock: machine.clock,
      ready: arrived.promise,
      socket: socketPath(stateFolder),
      ...(config.tls && { tls: tlsOf(config.tls) }),
      ...(listen && { tcp: listen }),
    });
    if (movedAt === undefined) {
      writeDataFolder(dataOf(data), state);
      leaving.leave();
      log.info(
        { data, znodes: state.znodes.size, sessions: state.sessions.size },
        `the tree is written: start the ZooKeeper at ${servers} now`,
      );
    } else log.info({ moved: new Date(movedAt).toISOString() }, `the tree is at ${servers}`);
    const tree = await whenUp(config, machine, log, stopping);
    try {
      await compare(tree, leaving, servers);
    } finally {
      await tree.close();
    }
  } catch (error) {
    await forwarder?.close();
    leaving.close();
    throw error;
  }
  arrived.resolve();
  const { addresses } = forwarder;
  log.info({ servers, addresses }, "the ZooKeeper has everything; clients go on");
  return {
    close: async () => {
      if (forwarder.clients > 0)
        log.warn({ clients: forwarder.clients }, `clients that still come here: tell them ${servers}`);
      await forwarder.close();
      leaving.close();
    },
  };
}

/**
 * Makes the tree that a stopped ZooKeeper has in its folders that of a state folder: what was moved there, and all that was written since. Rejects
 * with MoveRefused, StoreRefused, and ProcessError where the ZooKeeper runs, if it is named. Returns how much it was.
 */
export async function takeBack(
  wish: Omit<PromoteWish, "data">,
  folders: readonly string[],
  machine: Machine,
): Promise<{ readonly znodes: number; readonly sessions: number }> {
  const { stateFolder, files, to } = wish;
  if (files !== undefined || to !== undefined) await refuseIfUp(await targetOf(wish, machine), machine);
  makeStateFolder(stateFolder);
  const stopped = readDataFolder(folders);
  putBack(stateFolder, stopped, machine.clock.now());
  return { znodes: stopped.state.znodes.size, sessions: stopped.state.sessions.size };
}

/** The ZooKeeper that is meant. Its root becomes that of the tree, so it has no chroot. */
async function targetOf({ files, to }: PromoteWish, machine: Machine): Promise<ZookeeperConfig> {
  const named = files && (await zookeeperOf(files, machine, anyDriver()));
  if (to === undefined && (named === undefined || named.servers.length === 0))
    throw new ProcessError(
      "process.no_zookeeper",
      "no ZooKeeper is named: give --to HOST:PORT,HOST:PORT, or with -c a configuration with zookeeper-servers",
    );
  const servers = to === undefined ? named!.servers : to.split(",").map(hostAndPort);
  if (to === undefined && named!.chroot !== "")
    throw new ProcessError(
      "process.chroot",
      `${files!.path} has the chroot ${named!.chroot}: a tree that moves becomes the whole of a ZooKeeper; leave the chroot out`,
    );
  return { servers, chroot: "", tls: named?.tls ?? null, timeoutMs: named?.timeoutMs ?? 10_000 };
}

/** Throws ProcessError. */
function hostAndPort(text: string): { readonly host: string; readonly port: number } {
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(text.trim()) ?? [];
  if (host === undefined) throw new ProcessError("process.no_zookeeper", `--to: ${text} is no HOST:PORT`);
  return { host: host.replace(/^\[(.*)\]$/, "$1"), port: Number(port) };
}

function dataOf(data: string | undefined): string {
  if (data !== undefined) return data;
  throw new ProcessError(
    "process.no_data_folder",
    "--data is missing: name the dataDir of the new ZooKeeper, which must not have run yet",
  );
}

/** A ZooKeeper that runs already would never read what is written for it. */
async function refuseIfUp(config: ZookeeperConfig, machine: Machine): Promise<void> {
  const tree = await connectZooKeeper(config, machine, undefined, ANSWER_MS).catch(() => undefined);
  if (tree === undefined) return;
  await tree.close();
  throw new ProcessError(
    "process.zookeeper_runs",
    `a ZooKeeper runs at ${connectionString(config)}: stop it first; to move a tree there, empty its dataDir, too`,
  );
}

/** The ZooKeeper, as soon as it answers; says again and again why it does not. */
async function whenUp(
  config: ZookeeperConfig,
  machine: Machine,
  log: Log,
  stopping: AbortSignal,
): Promise<Tree> {
  for (;;) {
    stopping.throwIfAborted();
    try {
      return await connectZooKeeper(config, machine);
    } catch (error) {
      log.warn({ error: messageOf(error) }, "still waiting for the ZooKeeper");
    }
  }
}

/** Rejects with ProcessError if the ZooKeeper lacks a znode, or has an older state of one. What its clients have done meanwhile is no loss. */
async function compare(tree: Tree, { stats, state }: LeavingTree, servers: string): Promise<void> {
  const lost = async (path: string, known: Stat): Promise<boolean> => {
    const stat = await tree.stat(path);
    if (stat !== undefined) return stat.czxid < known.czxid || stat.mzxid < known.mzxid;
    const parent = await tree.stat(path.slice(0, Math.max(1, path.lastIndexOf("/"))));
    return parent !== undefined && parent.pzxid <= state.zxid;
  };
  const all = [...stats];
  for (let at = 0; at < all.length; at += COMPARED) {
    const part = all.slice(at, at + COMPARED);
    const verdicts = await Promise.all(part.map(([path, known]) => lost(path, known)));
    const first = part[verdicts.indexOf(true)];
    if (first !== undefined)
      throw new ProcessError(
        "process.move_incomplete",
        `the ZooKeeper at ${servers} lacks ${first[0]}, or has an older state of it: it did not start on what was written; stop it, and take the tree back with "nodeyard promote --back --data FOLDER"`,
      );
  }
}
