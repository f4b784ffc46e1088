import type { Clock, Random } from "@nodeyard/runtime";
import { ZooKeeper, type ZooKeeperOptions } from "@nodeyard/zookeeper";
import type { Tree } from "../contract.ts";
import { RemoteTree } from "../remote/remote-tree.ts";
import { MAX_REQUEST_BYTES } from "../request-size.ts";
import type { WriteEnded } from "../under-way.ts";
import { type ClientError, treeError } from "./errors.ts";
import { ZooKeeperPort } from "./port.ts";

const CONNECT_MS = 30_000;
const RESYNC_SPREAD_MS = 2_000;

/** Address of the ZooKeeper that stores the tree, and the client's options; times in milliseconds. */
export interface ZooKeeperTreeOptions extends ZooKeeperOptions {
  /** "host:port,host:port", optionally followed by a chroot. */
  readonly servers: string;
  /** Path below which all znodes are stored. It must exist. */
  readonly chroot?: string;
  /** Limit for the first connection; default 30,000. */
  readonly connectDeadlineMs?: number;
  /** After a reconnect each feed starts its comparison at a random moment within this span; default 2,000. */
  readonly resyncSpreadMs?: number;
  /** Writes are refused with ReadsOnly before they are sent, and nothing of this session but its begin and end is in the servers' logs. */
  readonly readsOnly?: boolean;
  /** Called at the end of each write. */
  readonly onWrite?: (write: WriteEnded) => void;
  readonly clock: Clock;
  readonly random: Random;
}

/** Opens a session with ZooKeeper servers. Rejects when no server accepts it before the deadline; the client is closed then. */
export async function connectZooKeeperTree(options: ZooKeeperTreeOptions): Promise<Tree> {
  const { servers, chroot = "", connectDeadlineMs = CONNECT_MS, readsOnly, onWrite, ...how } = options;
  const { resyncSpreadMs = RESYNC_SPREAD_MS, maxRequestBytes = MAX_REQUEST_BYTES, ...client } = how;
  const { clock, random } = client;
  const zookeeper = new ZooKeeper(`${servers}${chroot === "/" ? "" : chroot}`, {
    ...client,
    maxRequestBytes,
  });
  const port = new ZooKeeperPort(zookeeper, clock, maxRequestBytes, readsOnly);
  const tree = new RemoteTree(port, { clock, random, resyncSpreadMs, onWrite });
  try {
    await zookeeper.connect({ deadlineMs: connectDeadlineMs });
  } catch (error) {
    await zookeeper.close();
    throw treeError(error as ClientError, `connecting to ${servers}`, chroot || "/", 0, 0);
  }
  return tree;
}
