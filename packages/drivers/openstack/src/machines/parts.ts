import {
  type DriverContext,
  type Evidence,
  ListWatch,
  type Log,
  memoryEvidence,
  type NodeMachines,
} from "@nodeyard/driver";
import { messageOf } from "@nodeyard/runtime";
import { Compute, type Server, serverList } from "../api/compute.ts";
import { Images } from "../api/image.ts";
import { Networking } from "../api/network.ts";
import { BlockStorage } from "../api/volume.ts";
import { Service, type ServiceName } from "../client/index.ts";
import type { Cloud } from "../clouds/index.ts";
import type { OpenstackProviderConfig } from "../config.ts";
import type { Lease } from "../credentials.ts";
import { Lookups } from "../lookups/lookups.ts";
import { FloatingIps } from "./floating-ips.ts";
import { serversOf } from "./servers.ts";

/** The handles of a provider. It keeps no state of its own: all state is in the cloud. */
export interface Parts {
  readonly config: OpenstackProviderConfig;
  readonly cloud: Cloud;
  readonly log: Log;
  /** This host has a routable IPv6 address. */
  readonly ipv6: boolean;
  /**
   * Tags of ports and volumes. In memory only when the launcher passes no store: leaked ones of an earlier process are then not deleted.
   */
  readonly evidence: Evidence;
  readonly nova: Compute;
  readonly neutron: Networking;
  readonly cinder: BlockStorage;
  readonly glance: Images;
  readonly lookups: Lookups;
  /** The listing of servers that all waiting steps of this provider share. */
  readonly watch: ListWatch<Server>;
  readonly servers: NodeMachines<Server>;
  readonly floatingIps: FloatingIps;
}

/** Makes the handles. `closed` ends calls that continue without their caller. */
export function partsOf(
  config: OpenstackProviderConfig,
  context: DriverContext,
  { session, cloud }: Lease,
  ipv6: boolean,
  closed: AbortSignal,
): Parts {
  const { clock, log, observe } = context;
  const service = (name: ServiceName) => new Service(name, session, cloud.place, clock, observe);
  // Known after the login: clouds.yaml may name the project by name or id, or not at all (application credentials).
  const project = async (signal: AbortSignal) => (await session.token(signal)).projectId;
  const evidence = context.evidence ?? memoryEvidence();
  const nova = new Compute(service("compute"));
  const neutron = new Networking(service("network"), project);
  const glance = new Images(service("image"), project);
  const watch = new ListWatch<Server>({
    clock,
    list: (signal, since) => nova.servers(signal, since),
    ...serverList,
    onFailure: (error) =>
      log.warn({ provider: config.name, error: messageOf(error) }, "cannot list the servers; will retry"),
  });
  return {
    config,
    cloud,
    log,
    ipv6,
    evidence,
    nova,
    neutron,
    cinder: new BlockStorage(service("block-storage")),
    glance,
    lookups: new Lookups(clock, { compute: nova, networking: neutron, images: glance }),
    watch,
    servers: serversOf({ nova, watch, clock, evidence, closed }),
    floatingIps: new FloatingIps(clock, neutron),
  };
}
