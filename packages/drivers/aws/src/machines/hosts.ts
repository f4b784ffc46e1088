import type { Host } from "@aws-sdk/client-ec2";
import {
  abortable,
  type Clock,
  DriverError,
  type MakeCall,
  type Metadata,
  NodeMachines,
  unlessRefused,
} from "@nodeyard/driver";
import type { AwsAccount } from "../account.ts";
import type { AwsOrder } from "../config.ts";
import { clientToken, metadataOf, tagSpecifications } from "../tags.ts";
import { CREATE_MS, idsOf } from "./instances.ts";

/** Dedicated hosts. Each node has its own, which is released with the node. */
export function hostsOf(account: AwsAccount, clock: Clock, closed: AbortSignal): NodeMachines<Host> {
  return new NodeMachines<Host>({
    ...{ clock, closed, createMs: CREATE_MS, watch: account.hosts, what: "host" },
    idOf: ({ HostId = "" }) => HostId,
    idIn: (externalId) => idsOf(externalId).host,
    metadataOf: ({ Tags }) => metadataOf(Tags),
    isUp: ({ State }) => State === "available",
    // A host that was released is listed for a while.
    hasFailed: ({ State = "" }) => /permanent-failure|^released/.test(State),
    failure: ({ HostId, State }, place) =>
      new DriverError("transient", `${place}: host ${HostId} went to ${State}`),
    isLeaving: () => false,
    // EC2 refuses for a while after its instance is gone. The wait for the end then asks again.
    delete: (id, signal) => unlessRefused(abortable(account.release(id), signal), /^InvalidHost(I[Dd])?\./),
    read: async (id, signal) => {
      const found = await account.aws.maybe("ec2.describeHosts", { HostIds: [id] }, signal);
      return found?.Hosts?.find(({ State = "" }) => !State.startsWith("released"));
    },
  });
}

/** The call that allocates a host in the zone. It costs money from then on. A repeated call with the same attempt gets the same host. */
export function allocation({ aws }: AwsAccount, order: AwsOrder, tags: Metadata): MakeCall {
  const { own, name } = order.label;
  if (order.az === null || own.instanceType === null)
    throw new DriverError(
      "configuration",
      `label ${name} needs an instance-type and the availability-zone of its pool`,
    );
  const request = {
    // No other machine of the account may land on the host, and it is not replaced: a node that loses its host is lost.
    ...({ AutoPlacement: "off", HostRecovery: "off", HostMaintenance: "off", Quantity: 1 } as const),
    AvailabilityZone: order.az,
    InstanceType: own.instanceType,
    ClientToken: clientToken(order.tag, "host", order.attempt),
    TagSpecifications: tagSpecifications(["dedicated-host"], tags),
  };
  return async (signal) => {
    const id = (await aws.call("ec2.allocateHosts", request, signal)).HostIds?.[0];
    if (id === undefined) throw new DriverError("transient", "AllocateHosts answered without a host");
    return id;
  };
}
