import type { HostAndPort } from "../connection-string.ts";
import type { Connector, Endpoint, Random } from "../types.ts";

export interface Round {
  /** Every address of every host, in random order. */
  readonly endpoints: readonly Endpoint[];
  /** One failure for each host that has no address. */
  readonly failures: readonly Error[];
}

/** Resolves all hosts again for each round, because addresses can change during the life of a process, for instance in Kubernetes. */
export async function resolveRound(
  hosts: readonly HostAndPort[],
  connector: Connector,
  random: Random,
): Promise<Round> {
  const failures: Error[] = [];
  const lists = await Promise.all(
    hosts.map(async ({ host, port }) => {
      try {
        const addresses = await connector.resolve(host);
        return addresses.map((address): Endpoint => ({ host, port, address }));
      } catch (error) {
        failures.push(error as Error);
        return [];
      }
    }),
  );
  return { endpoints: shuffle(lists.flat(), random), failures };
}

function shuffle<T>(items: T[], random: Random): T[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = Math.floor(random.float() * (i + 1));
    const kept = items[i] as T;
    items[i] = items[j] as T;
    items[j] = kept;
  }
  return items;
}
