import type { Machine } from "@nodeyard/driver";
import type { NodePatch } from "@nodeyard/model";
import type { ServingPool } from "../context.ts";

/** What the record of a node is to say of its machine (docs/contract/records.md, "What is written when"). */
export function machinePatch(pool: ServingPool, machine: Machine): NodePatch {
  const internal =
    pool.open.config.pools.find((candidate) => candidate.name === pool.name)?.useInternalIp === true;
  const address =
    (internal ? (machine.privateIpv4 ?? machine.privateIpv6) : undefined) ?? machine.interfaceIp;
  const { connection } = machine;
  return {
    externalId: machine.externalId,
    interfaceIp: address,
    publicIpv4: machine.publicIpv4 ?? null,
    privateIpv4: machine.privateIpv4 ?? null,
    publicIpv6: machine.publicIpv6 ?? null,
    cloud: machine.cloud ?? null,
    region: machine.region ?? null,
    hostId: machine.hostId ?? null,
    driverData: machine.driverData ?? null,
    // A cloud that does not say keeps the zone that was chosen.
    ...(machine.az == null ? {} : { az: machine.az }),
    ...(machine.slot == null ? {} : { slot: machine.slot }),
    ...(machine.resources == null ? {} : { resources: { ...machine.resources } }),
    ...(connection?.username === undefined ? {} : { username: connection.username }),
    ...(connection?.pythonPath === undefined ? {} : { pythonPath: connection.pythonPath }),
    ...(connection?.shellType === undefined ? {} : { shellType: connection.shellType }),
    ...(connection?.type === undefined ? {} : { connectionType: connection.type }),
    ...(connection?.port === undefined ? {} : { connectionPort: connection.port }),
  };
}
