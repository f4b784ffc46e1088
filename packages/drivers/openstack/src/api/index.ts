import type { Service, ServiceName } from "../client/index.ts";
import * as kinds from "./kinds.ts";
import { Objects } from "./objects.ts";

export type { Flavor, FloatingIp, Image, Network, Port, Server, Volume } from "./kinds.ts";

/** The driver's calls: the services, and what they have. */
export function apiOf(service: (name: ServiceName) => Service) {
  const [nova, neutron, glance] = [service("compute"), service("network"), service("image")];
  const cinder = service("block-storage");
  return {
    ...{ nova, neutron, cinder, glance },
    servers: new Objects(nova, kinds.SERVERS),
    flavors: new Objects(nova, kinds.FLAVORS),
    networks: new Objects(neutron, kinds.NETWORKS),
    ports: new Objects(neutron, kinds.PORTS),
    floatingIps: new Objects(neutron, kinds.FLOATING_IPS),
    volumes: new Objects(cinder, kinds.VOLUMES),
    images: new Objects(glance, kinds.IMAGES),
  };
}
export type Api = ReturnType<typeof apiOf>;
