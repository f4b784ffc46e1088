import type { Client, Hub } from "./hub.ts";

/** Shown in the place of ZooKeeper's release: tools parse the number, and people see that it is Nodeyard. */
const VERSION = "3.6.0-nodeyard";

/**
 * Answers in ZooKeeper's formats (ZooKeeper Administrator's Guide, "The Four Letter Words"). Values that this server does
 * not measure (latencies) or does not have (ticks, a Java runtime) are omitted.
 */
const ANSWERS: Readonly<Record<string, (hub: Hub, asking: Client) => string>> = {
  ruok: () => "imok",
  isro: () => "rw",
  envi: () => `Environment:\nzookeeper.version=${VERSION}\n`,
  srvr: (hub) => `${version()}${figures(hub)}`,
  stat: (hub, asking) => `${version()}Clients:\n${clients(hub, asking, brief)}\n${figures(hub)}`,
  cons: (hub, asking) => `${clients(hub, asking, detailed)}\n`,
  conf,
  wchs,
  mntr,
};

/** Words that ZooKeeper knows and this server does not support. Otherwise they would be read as the length of a frame. */
const REFUSED: ReadonlySet<string> = new Set([
  "crst",
  "dirs",
  "dump",
  "gtmk",
  "hash",
  "lsnp",
  "stmk",
  "srst",
  "wchc",
  "wchp",
]);

/** The answer to a four-letter word; undefined when the text is not one. */
export function fourLetterAnswer(word: string, hub: Hub, asking: Client): string | undefined {
  if (REFUSED.has(word)) return `${word} is not executed because it is not in the whitelist.\n`;
  return Object.hasOwn(ANSWERS, word) ? ANSWERS[word]?.(hub, asking) : undefined;
}

function version(): string {
  return `Zookeeper version: ${VERSION}\n`;
}

/** The lines that `srvr` and `stat` have in common. */
function figures(hub: Hub): string {
  let outstanding = 0;
  for (const connection of hub.connections) outstanding += connection.outstanding;
  return [
    `Received: ${hub.received}`,
    `Sent: ${hub.sent}`,
    `Connections: ${hub.connections.size}`,
    `Outstanding: ${outstanding}`,
    `Zxid: 0x${hub.core.zxid.toString(16)}`,
    "Mode: standalone",
    `Node count: ${hub.core.znodeCount}`,
    "",
  ].join("\n");
}

/** One line per connection. As in ZooKeeper, the number in brackets is 0 for the connection that asks. */
function clients(hub: Hub, asking: Client, describe: (connection: Client) => string): string {
  let lines = "";
  for (const connection of hub.connections) {
    const mark = connection === asking ? 0 : 1;
    lines += ` /${connection.peer.name}[${mark}](${describe(connection)})\n`;
  }
  return lines;
}

/** As `stat` shows a connection. */
function brief({ outstanding, received, sent }: Client): string {
  return `queued=${outstanding},recved=${received},sent=${sent}`;
}

/** As `cons` shows a connection: with its session, when it began (ms since the epoch) and its timeout (ms). */
function detailed(connection: Client): string {
  const { session, since } = connection;
  if (session === undefined) return brief(connection);
  return `${brief(connection)},sid=0x${session.id.toString(16)},est=${since},to=${session.timeoutMs}`;
}

/** Settings under the names that they have in zoo.cfg; the port is -1 when only the Unix socket listens. */
function conf(hub: Hub): string {
  const { port, limits } = hub;
  return [
    `clientPort=${port ?? -1}`,
    `maxClientCnxns=${limits.maxConnections}`,
    `minSessionTimeout=${limits.minSessionTimeoutMs}`,
    `maxSessionTimeout=${limits.maxSessionTimeoutMs}`,
    "serverId=0",
    "",
  ].join("\n");
}

function wchs({ watches }: Hub): string {
  const { watchers, paths, size } = watches.sums();
  return `${watchers} connections watching ${paths} paths\nTotal watches:${size}\n`;
}

/** Figures as name, tab, value, which monitoring tools for ZooKeeper read. `zk_connections_cut_*` are ours. */
function mntr(hub: Hub): string {
  const { core } = hub;
  const rows: [string, string | number][] = [
    ["zk_version", VERSION],
    ["zk_server_state", "standalone"],
    ["zk_packets_received", hub.received],
    ["zk_packets_sent", hub.sent],
    ["zk_num_alive_connections", hub.connections.size],
    ["zk_znode_count", core.znodeCount],
    ["zk_watch_count", hub.watches.size],
    ["zk_global_sessions", core.sessionCount("wire")],
    ["zk_fsync_count", core.batches],
    ...[...hub.cuts].map(([reason, count]): [string, number] => [`zk_connections_cut_${reason}`, count]),
  ];
  return rows.map(([name, value]) => `${name}\t${value}\n`).join("");
}
