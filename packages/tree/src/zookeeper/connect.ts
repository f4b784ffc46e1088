import type { Clock, Random } from "@nodeyard/runtime";
import { type Hooks, type TlsOptions, ZooKeeper, type ZooKeeperOptions } from "@nodeyard/zookeeper";
import type { Tree } from "../contract.ts";
import { RemoteTree } from "../remote/remote-tree.ts";
import { MAX_REQUEST_BYTES } from "../request-size.ts";
import type { WriteEnded } from "../under-way.ts";
import { type ClientError, treeError } from "./errors.ts";
import { ZooKeeperPort } from "./port.ts";

const CONNECT_MS = 30_000;
const RESYNC_SPREAD_MS = 2_000;

/** Which ZooKeeper holds the tree, and how it is connected to; times in milliseconds. */
export interface ZooKeeperTreeOptions {
  /** "host:port,host:port"; a chroot may follow it, or be given apart. */
  readonly servers: string;
  /** Path below which everything lives; must exist. */
  readonly chroot?: string;
  readonly tls?: TlsOptions;
  /** addauth, or SASL DIGEST-MD5. */
  readonly auth?: ZooKeeperOptions["auth"];
  readonly sasl?: ZooKeeperOptions["sasl"];
  /** Default 10,000; servers may clamp it. */
  readonly sessionTimeoutMs?: number;
  /** Limit for the first connection; default 30,000. */
  readonly connectDeadlineMs?: number;
  /** Limit of calls that name none; default 60,000. */
  readonly callDeadlineMs?: number;
  /** Span after a reconnect in which feeds begin to compare themselves with the tree; default 2,000. */
  readonly resyncSpreadMs?: number;
  /** Longest write, bytes; at most the servers' `jute.maxbuffer`. Default 1,048,575. */
  readonly maxRequestBytes?: number;
  readonly connector?: ZooKeeperOptions["connector"];
  readonly hooks?: Hooks;
  /** Hears of each write that ended. */
  readonly onWrite?: (write: WriteEnded) => void;
  readonly clock: Clock;
  readonly random: Random;
}

/** Opens a session with ZooKeeper servers. Rejects when none lets us in before the deadline; nothing is left of it then. */
export async function connectZooKeeperTree(options: ZooKeeperTreeOptions): Promise<Tree> {
  const { servers, chroot = "", clock, random, maxRequestBytes = MAX_REQUEST_BYTES } = options;
  const client = new ZooKeeper(`${servers}${chroot === "/" ? "" : chroot}`, clientOptions(options));
  const port = new ZooKeeperPort(client, clock, maxRequestBytes);
  const resyncSpreadMs = options.resyncSpreadMs ?? RESYNC_SPREAD_MS;
  const tree = new RemoteTree(port, { clock, random, resyncSpreadMs, onWrite: options.onWrite });
  try {
    await client.connect({ deadlineMs: options.connectDeadlineMs ?? CONNECT_MS });
  } catch (error) {
    await client.close();
    throw treeError(error as ClientError, `connecting to ${servers}`, chroot || "/", 0, 0);
  }
  return tree;
}

function clientOptions(options: ZooKeeperTreeOptions): ZooKeeperOptions {
  const { clock, random, tls, auth, sasl, sessionTimeoutMs, callDeadlineMs, connector, hooks } = options;
  const { maxRequestBytes = MAX_REQUEST_BYTES } = options;
  return {
    clock,
    random,
    maxRequestBytes,
    ...(tls && { tls }),
    ...(auth && { auth }),
    ...(sasl && { sasl }),
    ...(connector && { connector }),
    ...(hooks && { hooks }),
    ...(sessionTimeoutMs !== undefined && { sessionTimeoutMs }),
    ...(callDeadlineMs !== undefined && { operationTimeoutMs: callDeadlineMs }),
  };
}
