import type { InventoryItem, Machine } from "@nodeyard/driver";
import type { StaticHost, StaticProviderConfig } from "./config.ts";

/** A host with the pool that offers it. */
export interface PlacedHost {
  readonly host: StaticHost;
  readonly item: InventoryItem;
}

/** All hosts of a provider by key, in the order of the file. A host without slots is not offered. */
export function placedHosts(config: StaticProviderConfig): ReadonlyMap<string, PlacedHost> {
  const hosts = new Map<string, PlacedHost>();
  for (const pool of config.pools) {
    for (const host of pool.own.hosts) {
      if (host.slots < 1) continue;
      const item = {
        key: identityOf(host),
        pool: pool.name,
        labels: host.labels,
        slots: host.slots,
        machine: machineOf(host, host.hostKeys, undefined),
        connection: host.connection,
      };
      hosts.set(item.key, { host, item });
    }
  }
  return hosts;
}

/** What the node record shows of a host; `resolved` is the address that answered. */
export function machineOf(
  host: StaticHost,
  hostKeys: readonly string[],
  resolved: { readonly address: string; readonly family: 4 | 6 } | undefined,
): Machine {
  return {
    externalId: host.name,
    interfaceIp: host.name,
    hostname: host.name,
    publicIpv4: resolved?.family === 4 ? resolved.address : null,
    publicIpv6: resolved?.family === 6 ? resolved.address : null,
    // Counts in tenant accounting as each node of a label does.
    resources: { instances: 1 },
    connection: host.connection,
    hostKeys,
  };
}

/** Identity of a host across restarts and reloads: user, name and port. */
export function identityOf(host: StaticHost): string {
  return `${host.connection.username ?? ""}@${host.name}:${host.connection.port}`;
}
