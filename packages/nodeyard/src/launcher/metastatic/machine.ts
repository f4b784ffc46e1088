import type { Machine, PoolConfig, Resources } from "@nodeyard/driver";
import type { NodePatch, NodeRecord } from "@nodeyard/model";
import { type SlotPlace, slotData } from "../../operations/index.ts";
import type { SlotIsolation } from "../../slivers/index.ts";

/**
 * What the record of a node says once it has a slot: what its backing node says, where that is (docs/contract/drivers.md,
 * "Metastatic records").
 */
export function slotPatch(
  node: { readonly id: string; readonly provider: string },
  pool: PoolConfig,
  backing: NodeRecord,
  place: SlotPlace,
  isolation?: SlotIsolation,
): NodePatch {
  const { interfaceIp, publicIpv4, publicIpv6, privateIpv4, az, region, cloud } = backing;
  const { username, pythonPath, shellType, connectionPort, connectionType, hostKeys } = backing;
  return {
    externalId: node.id,
    interfaceIp,
    publicIpv4,
    publicIpv6,
    privateIpv4,
    az,
    region,
    cloud,
    username,
    pythonPath,
    shellType,
    connectionPort,
    connectionType,
    hostKeys,
    attributes:
      backing.attributes === null && pool.nodeAttributes === null
        ? null
        : { ...backing.attributes, ...pool.nodeAttributes },
    slot: place.slot,
    driverData: {
      ...slotData({ id: node.id, pool: pool.name, provider: node.provider }, place),
      // Ours alone, and written with the claim: a sliver may be there from then on.
      ...(isolation === undefined ? {} : { isolation: "sliver" }),
      ...(isolation?.lends === true ? { lend: "idle" } : {}),
    },
  };
}

/** The same as a machine; how to connect is in the record already, where a port may also be an object. */
export function slotMachine(id: string, record: NodeRecord, hostKeys: readonly string[]): Machine {
  return {
    externalId: id,
    interfaceIp: record.interfaceIp,
    publicIpv4: record.publicIpv4,
    publicIpv6: record.publicIpv6,
    privateIpv4: record.privateIpv4,
    az: record.az,
    region: record.region,
    cloud: record.cloud,
    slot: record.slot,
    driverData: record.driverData,
    hostKeys,
  };
}

/**
 * What a slot counts for: one instance, since the machine is charged to its own provider (docs/contract/drivers.md, "Metastatic
 * records"); and, where it is a sliver, what its user is promised of it.
 */
export function slotResources(isolation: SlotIsolation | undefined): Resources {
  if (isolation === undefined) return { instances: 1, cores: 0, ram: 0 };
  const { cpuGuarantee = 0, memoryGuarantee = 0, disk = 0 } = isolation.rspec;
  return {
    instances: 1,
    millicores: cpuGuarantee,
    cores: Math.floor(cpuGuarantee / 1000),
    ram: Math.ceil(memoryGuarantee / 1024),
    "disk-mib": Math.ceil(disk / 1024),
  };
}
