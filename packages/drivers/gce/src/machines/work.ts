import { CALL_MS, type MachineTable, type MachineWork, machineName, orThrow } from "@nodeyard/driver";
import type { GceOrder, GceProviderConfig } from "../config.ts";
import { insertBody } from "./body.ts";
import { type Instance, type Instances, idOf, last } from "./instances.ts";

/**
 * What the kit's steps need of machines. Before those a launch has one that saves the machine's name and zone, so that another process looks
 * for it there, even while no listing shows it.
 */
export function instanceWork(
  config: GceProviderConfig,
  { machines, insert }: Instances,
): MachineWork<Instance, string, MachineTable<Instance>> {
  const { region } = config.own;
  return {
    machines,
    makeMs: config.launchTimeoutMs,
    async *before(order: GceOrder, found, saving) {
      const zone = found === undefined ? zoneOf(config, order) : last(found.zone);
      const id = found === undefined ? idOf({ zone, name: machineName(order.tag) }) : idOf(found);
      yield { step: "name", deadlineMs: CALL_MS, ...saving(id) };
      return zone;
    },
    make: async (order: GceOrder, zone = "") => insert(zone, insertBody(order, region, zone)),
    describe: (_, { name: hostname, zone, networkInterfaces: [first] = [] }) => ({
      ...{ hostname, cloud: "Google", region, az: last(zone) },
      publicIpv4: first?.accessConfigs?.[0]?.natIP ?? null,
      privateIpv4: first?.networkIP ?? null,
    }),
  };
}

function zoneOf({ own, name }: GceProviderConfig, { az, pool }: GceOrder): string {
  const zone = az ?? pool.availabilityZones[0] ?? own.zone ?? undefined;
  return orThrow(zone, `${name}: no zone was chosen, as the region's zones are not known yet`, "transient");
}
