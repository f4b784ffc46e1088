import { createHash } from "node:crypto";
import type { InventoryItem, Machine } from "@nodeyard/driver";
import type { StaticHost, StaticProviderConfig } from "./config.ts";

/** A host and its pool. */
interface PlacedHost {
  readonly host: StaticHost;
  readonly item: InventoryItem;
}

/**
 * All hosts of a provider by user, name and port, in the order of the file. A host without slots is left out. The key identifies
 * a host over reloads, so a changed label or timeout does not make it a new one.
 */
export function placedHosts(config: StaticProviderConfig): ReadonlyMap<string, PlacedHost> {
  const hosts = new Map<string, PlacedHost>();
  for (const pool of config.pools) {
    for (const host of pool.own.hosts) {
      if (host.slots < 1) continue;
      const { name, connection, labels, slots, hostKeys } = host;
      const key = `${connection.username ?? ""}@${name}:${connection.port}`;
      const machine = machineOf(host, hostKeys, undefined);
      hosts.set(key, { host, item: { key, pool: pool.name, labels, slots, machine, connection } });
    }
  }
  return hosts;
}

/** The host as a node record has it (docs/contract/drivers.md, "Static records"); `resolved`: the address that answered, if any. */
export function machineOf(
  host: StaticHost,
  hostKeys: readonly string[],
  resolved: { readonly address: string; readonly family: 4 | 6 } | undefined,
): Machine {
  return {
    externalId: host.name,
    // The name as it is configured, as in Nodepool: Zuul resolves it itself.
    interfaceIp: host.name,
    hostname: host.name,
    publicIpv4: resolved?.family === 4 ? resolved.address : null,
    publicIpv6: resolved?.family === 6 ? resolved.address : null,
    // Counts for the tenant's limits like any other node.
    resources: { instances: 1 },
    connection: host.connection,
    hostKeys,
  };
}

/** Why a configured key is missing among the keys that the host shows; undefined when all are shown. */
export function mismatch(
  { name, connection, hostKeys }: StaticHost,
  shown: readonly string[],
): string | undefined {
  const known = new Set(shown);
  const missing = hostKeys.filter((key) => !known.has(key));
  if (missing.length === 0) return undefined;
  const wanted = missing.map(fingerprint).join(", ");
  const seen = shown.length === 0 ? "none" : shown.map(fingerprint).join(", ");
  const where = `${name}:${connection.port}`;
  return `host key mismatch: ${where} does not show the configured ${wanted}; it shows ${seen}`;
}

/** The fingerprint in the form of `ssh-keygen -l`, so that people can compare. */
function fingerprint(key: string): string {
  const [type = "", data = ""] = key.split(" ");
  const digest = createHash("sha256").update(Buffer.from(data, "base64")).digest("base64");
  return `${type} SHA256:${digest.replace(/=+$/, "")}`;
}
