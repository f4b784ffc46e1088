import { type DriverContext, ListWatch, memoryEvidence, messageOf } from "@nodeyard/driver";
import { apiOf, type Server } from "./api/index.ts";
import { Service, type Session } from "./client/index.ts";
import type { Cloud } from "./clouds/index.ts";
import type { OpenstackProviderConfig } from "./config.ts";
import { Lookups } from "./lookups/lookups.ts";
import { FloatingIps } from "./machines/floating-ips.ts";
import { serverList, serversOf } from "./machines/servers.ts";

/** The handles of a provider, which keeps no state of its own: all state is in the cloud. */
export type Parts = ReturnType<typeof partsOf>;

/** What a provider has besides its configuration. */
export interface Handles {
  readonly session: Session;
  readonly cloud: Cloud;
  /** This host has a routable IPv6 address. */
  readonly ipv6: boolean;
  /** Ends calls that continue without their caller. */
  readonly closed: AbortSignal;
}

/** Makes the handles. Without durable evidence, of which ports and volumes have their tags, leaked ones of an earlier process are not deleted. */
export function partsOf(
  config: OpenstackProviderConfig,
  { clock, log, observe, evidence = memoryEvidence() }: DriverContext,
  { session, cloud, ipv6, closed }: Handles,
) {
  const api = apiOf((name) => new Service(name, session, cloud.place, clock, observe));
  /** The listing of servers that all waiting steps of this provider share. */
  const watch = new ListWatch<Server>({
    ...{ ...serverList, clock },
    list: (signal, since) =>
      // Many callers wait for it, so it goes before single calls at the rate limit. Changes include what was deleted.
      api.servers.list(signal, { first: true, ...(since && { query: { "changes-since": since } }) }),
    onFailure: (error) =>
      log.warn({ provider: config.name, error: messageOf(error) }, "cannot list the servers; will retry"),
  });
  return {
    ...{ config, cloud, log, ipv6, evidence, api, watch },
    lookups: new Lookups(clock, api),
    servers: serversOf({ api, watch, clock, evidence, closed }),
    floatingIps: new FloatingIps(clock, api),
  };
}
