import type { Hub } from "./hub.ts";

/** Shown where ZooKeeper shows its release: tools parse the number, people see who answers. */
const VERSION = "3.6.0-nodeyard";

/** The answer to a four-letter word, as ZooKeeper formats it; undefined for what is none of ours. */
export function fourLetterAnswer(word: string, hub: Hub): string | undefined {
  if (word === "ruok") return "imok";
  if (word === "srvr") return srvr(hub);
  if (word === "mntr") return mntr(hub);
  return undefined;
}

function srvr(hub: Hub): string {
  return [
    `Zookeeper version: ${VERSION}`,
    `Received: ${hub.received}`,
    `Sent: ${hub.sent}`,
    `Connections: ${hub.connections.size}`,
    `Zxid: 0x${hub.core.zxid.toString(16)}`,
    "Mode: standalone",
    `Node count: ${hub.core.znodeCount}`,
    "",
  ].join("\n");
}

function mntr(hub: Hub): string {
  const { core } = hub;
  const figures: [string, string | number][] = [
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
  return figures.map(([name, value]) => `${name}\t${value}\n`).join("");
}
