import { createHash } from "node:crypto";
import type { InventoryItem, Machine } from "@nodeyard/driver";
import type { StaticHost, StaticProviderConfig } from "./config.ts";

/** A host with the pool that offers it. */
interface PlacedHost {
  readonly host: StaticHost;
  readonly item: InventoryItem;
}

/** All hosts of a provider by user, name and port, in the order of the file. A host without slots is not offered. */
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

/** Why the host's configured keys are not all among those that it shows; undefined when they are. */
export function mismatch(
  { name, connection, hostKeys }: StaticHost,
  shown: readonly string[],
): string | undefined {
  const known = new Set(shown.map(bare));
  const missing = hostKeys.filter((key) => !known.has(bare(key)));
  if (missing.length === 0) return undefined;
  const wanted = missing.map(fingerprint).join(", ");
  const seen = shown.length === 0 ? "none" : shown.map(fingerprint).join(", ");
  const where = `${name}:${connection.port}`;
  return `host key mismatch: ${where} does not show the configured ${wanted}; it shows ${seen}`;
}

/** Type and key; a comment at the end says nothing about the key. */
function bare(key: string): string {
  return key.trim().split(/\s+/, 2).join(" ");
}

/** As `ssh-keygen -l` writes it, so that a person can compare. */
function fingerprint(key: string): string {
  const [type = "", data = ""] = bare(key).split(" ");
  const digest = createHash("sha256").update(Buffer.from(data, "base64")).digest("base64");
  return `${type} SHA256:${digest.replace(/=+$/, "")}`;
}
