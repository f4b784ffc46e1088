import { wire } from "@nodeyard/zookeeper";
import type { Client, Hub } from "./hub.ts";
import type { WatchKind } from "./watches.ts";

const { OpCode, WatcherType } = wire;

/** Types 4 and 5 are new in ZooKeeper 3.9. Nodeyard's client and older clients use `any` instead. */
const KINDS: Readonly<Record<number, readonly WatchKind[]>> = {
  [WatcherType.children]: ["child"],
  [WatcherType.data]: ["data"],
  [WatcherType.any]: ["data", "child", "persistent", "recursive"],
  4: ["persistent"],
  5: ["recursive"],
};

/** Sets a watch. False: the connection has reached its limit of watches. */
export function watch(hub: Hub, client: Client, kind: WatchKind, path: string): boolean {
  const { watches, limits } = hub;
  if (watches.has(client, kind, path)) return true;
  if (watches.weightOf(client) >= limits.maxWatchesPerConnection) return false;
  watches.add(client, kind, path);
  return true;
}

/** Handles checkWatches and removeWatches: returns whether there was such a watch. */
export function unwatch(hub: Hub, client: Client, request: wire.RemoveWatchesRequest): boolean {
  const kinds = KINDS[request.watcherType] ?? [];
  if (request.type === OpCode.checkWatches)
    return kinds.some((kind) => hub.watches.has(client, kind, request.path));
  return kinds.map((kind) => hub.watches.remove(client, kind, request.path)).includes(true);
}

/**
 * Sets the watches of a client that reconnects. The client names its watches and the last zxid it saw. One-shot watches
 * whose path changed since fire at once, by the rules of ZooKeeper's DataTree.setWatches; the others are set again.
 * Persistent watches do not report changes that were missed. False: the connection has reached its limit of watches.
 */
export function setWatches(hub: Hub, client: Client, request: wire.SetWatchesRequest): boolean {
  const { core } = hub;
  const seen = request.relativeZxid;
  for (const path of request.dataWatches) {
    const stat = core.stat(path);
    if (stat === undefined) client.notify("deleted", path, undefined);
    else if (stat.mzxid > seen) client.notify("changed", path, core.acl(path));
    else if (!watch(hub, client, "data", path)) return false;
  }
  for (const path of request.existWatches) {
    if (core.stat(path) !== undefined) client.notify("created", path, core.acl(path));
    else if (!watch(hub, client, "data", path)) return false;
  }
  for (const path of request.childWatches) {
    const stat = core.stat(path);
    if (stat === undefined) client.notify("deleted", path, undefined);
    else if (stat.pzxid > seen) client.notify("childrenChanged", path, core.acl(path));
    else if (!watch(hub, client, "child", path)) return false;
  }
  return (
    request.persistentWatches.every((path) => watch(hub, client, "persistent", path)) &&
    request.persistentRecursiveWatches.every((path) => watch(hub, client, "recursive", path))
  );
}
