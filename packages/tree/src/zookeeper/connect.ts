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

/** Which ZooKeeper holds the tree, and how it is connected to, as the client has it; times in milliseconds. */
export interface ZooKeeperTreeOptions extends ZooKeeperOptions {
  /** "host:port,host:port"; a chroot may follow it, or be given apart. */
  readonly servers: string;
  /** Path below which everything lives; must exist. */
  readonly chroot?: string;
  /** Limit for the first connection; default 30,000. */
  readonly connectDeadlineMs?: number;
  /** Span after a reconnect in which feeds begin to compare themselves with the tree; default 2,000. */
  readonly resyncSpreadMs?: number;
  /** Hears of each write that ended. */
  readonly onWrite?: (write: WriteEnded) => void;
  readonly clock: Clock;
  readonly random: Random;
}

/** Opens a session with ZooKeeper servers. Rejects when none lets us in before the deadline; nothing is left of it then. */
export async function connectZooKeeperTree(options: ZooKeeperTreeOptions): Promise<Tree> {
  const { servers, chroot = "", connectDeadlineMs = CONNECT_MS, onWrite, ...how } = options;
  const { resyncSpreadMs = RESYNC_SPREAD_MS, maxRequestBytes = MAX_REQUEST_BYTES, ...client } = how;
  const { clock, random } = client;
  const zookeeper = new ZooKeeper(`${servers}${chroot === "/" ? "" : chroot}`, {
    ...client,
    maxRequestBytes,
  });
  const port = new ZooKeeperPort(zookeeper, clock, maxRequestBytes);
  const tree = new RemoteTree(port, { clock, random, resyncSpreadMs, onWrite });
  try {
    await zookeeper.connect({ deadlineMs: connectDeadlineMs });
  } catch (error) {
    await zookeeper.close();
    throw treeError(error as ClientError, `connecting to ${servers}`, chroot || "/", 0, 0);
  }
  return tree;
}
