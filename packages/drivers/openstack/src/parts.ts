import { type DriverContext, memoryEvidence, type OpenFile } from "@nodeyard/driver";
import { apiOf } from "./api/index.ts";
import { Service, type Session } from "./client/index.ts";
import type { Cloud } from "./clouds/index.ts";
import type { OpenstackProviderConfig } from "./config.ts";
import { Lookups } from "./lookups/lookups.ts";
import { FloatingIps } from "./machines/floating-ips.ts";
import { serversOf } from "./machines/servers.ts";

/** The handles of a provider, which keeps no state of its own: all state is in the cloud. */
export type Parts = ReturnType<typeof partsOf>;

/** The handles that a provider is opened with, besides its configuration. */
export interface Handles {
  readonly session: Session;
  readonly cloud: Cloud;
  /** This host has a routable IPv6 address. */
  readonly ipv6: boolean;
  readonly openFile: OpenFile;
  /** Ends calls that continue without their caller. */
  readonly closed: AbortSignal;
}

/** Makes the handles. Without durable evidence, of which ports and volumes have their tags, leaked ones of an earlier process are not deleted. */
export function partsOf(
  config: OpenstackProviderConfig,
  { clock, log, observe, evidence = memoryEvidence() }: DriverContext,
  { session, cloud, ipv6, openFile, closed }: Handles,
) {
  const api = apiOf((name) => new Service(name, session, cloud.place, clock, observe));
  return {
    ...{ config, cloud, clock, log, ipv6, openFile, evidence, api },
    lookups: new Lookups(clock, api),
    servers: serversOf({ api, clock, evidence, closed, log, provider: config.name }),
    floatingIps: new FloatingIps(clock, api),
  };
}
