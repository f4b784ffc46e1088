import {
  CALL_MS,
  type CreateOrder,
  DriverError,
  type ExternalId,
  type LabelConfig,
  type Machine,
  type MachineWork,
  machineName,
} from "@nodeyard/driver";
import type { GceLabelOwn, GceProviderConfig } from "../config.ts";
import { labelAmounts, type TypeOf } from "../quota.ts";
import { insertBody } from "./body.ts";
import { type Instance, type Instances, idOf, last } from "./instances.ts";

/**
 * What the kit's steps need of machines. Before those a launch has one that saves the machine's name and zone, so that another process looks
 * for it there, even while no listing shows it.
 */
export function instanceWork(
  config: GceProviderConfig,
  instances: Instances,
  typeOf: TypeOf,
): MachineWork<Instance, string> {
  return {
    machines: instances,
    makeMs: config.launchTimeoutMs,
    async *before(order, found, saving) {
      const zone = found === undefined ? zoneOf(config, order) : last(found.zone);
      const id = found === undefined ? idOf({ zone, name: machineName(order.tag) }) : idOf(found);
      yield { step: "name", deadlineMs: CALL_MS, ...saving(id) };
      return zone;
    },
    make: async (order, zone = "") => instances.insert(zone, insertBody(order, config.own.region, zone)),
    describe: (order, instance, { externalId }, signal) =>
      describeMachine(config, typeOf, order, instance, externalId, signal),
  };
}

function zoneOf({ own, name }: GceProviderConfig, { az, pool }: CreateOrder): string {
  const zone = az ?? pool.availabilityZones[0] ?? own.zone;
  if (zone != null) return zone;
  throw new DriverError("transient", `${name}: no zone was chosen, as the region's zones are not known yet`);
}

async function describeMachine(
  config: GceProviderConfig,
  typeOf: TypeOf,
  order: CreateOrder,
  instance: Instance,
  externalId: ExternalId,
  signal: AbortSignal,
): Promise<Machine> {
  const [first] = instance.networkInterfaces ?? [];
  const publicIpv4 = first?.accessConfigs?.[0]?.natIP ?? null;
  const privateIpv4 = first?.networkIP ?? null;
  const zone = last(instance.zone);
  const { own } = order.label as LabelConfig<GceLabelOwn>;
  return {
    externalId,
    interfaceIp: publicIpv4 ?? privateIpv4,
    publicIpv4,
    privateIpv4,
    hostname: instance.name,
    cloud: "Google",
    region: config.own.region,
    az: zone,
    resources: labelAmounts(own, await typeOf(zone, own.instanceType, signal)),
  };
}
