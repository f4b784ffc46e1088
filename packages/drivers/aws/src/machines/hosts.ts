import type { Host, Instance } from "@aws-sdk/client-ec2";
import {
  ApiError,
  abortable,
  type CloudPart,
  DriverError,
  GONE_MS,
  type MachineWork,
  type MakeCall,
  type Metadata,
  NodeMachines,
  orThrow,
  type Tag,
  tagOf,
  unlessRefused,
} from "@nodeyard/driver";
import { LISTED_MS, type Site } from "../account.ts";
import type { Aws } from "../client/aws.ts";
import type { AwsOrder } from "../config.ts";
import { hostAmounts } from "../quota.ts";
import { clientToken, metadataOf, tagSpecifications } from "../tags.ts";
import { batched, type Refused } from "./batch.ts";
import { CREATE_MS, idsOf } from "./instances.ts";
import { tagsFor } from "./launch.ts";

/** Dedicated hosts. Each node has its own, which is released with the node. */
export function hostsOf({ aws, config, clock, log, closed }: Site) {
  const { name: provider, pools, launchTimeoutMs } = config;
  const placeOf = ({ nodeId }: Tag) => `${provider}: node ${nodeId}`;
  // As with instances, one id that is not known fails the call.
  const release = batched(clock, (ids) => refusedReleases(aws, ids, closed), /^InvalidHostI/);
  const machines = new NodeMachines<Host>({
    ...{ clock, closed, createMs: CREATE_MS, what: "host" },
    watch: {
      ...{ log, provider, settledMs: LISTED_MS },
      list: (signal) => aws.list("ec2.describeHosts", "Hosts", {}, signal),
      isGone: isReleased,
    },
    idOf: ({ HostId = "" }) => HostId,
    idIn: (externalId) => idsOf(externalId).host,
    metadataOf: ({ Tags }) => metadataOf(Tags),
    isUp: ({ State }) => State === "available",
    hasFailed: (host) => host.State === "permanent-failure" || isReleased(host),
    failure: ({ HostId, State }, place) =>
      new DriverError("transient", `${place}: host ${HostId} went to ${State}`),
    isLeaving: () => false,
    // EC2 refuses for a while after its instance is gone. The wait for the end then asks again.
    delete: (id, signal) => unlessRefused(abortable(release(id), signal), /^InvalidHost(I[Dd])?\./),
    read: async (id, signal) => {
      const found = await aws.maybe("ec2.describeHosts", { HostIds: [id] }, signal);
      return found?.Hosts?.find((host) => !isReleased(host));
    },
  });
  const part: CloudPart = {
    list: async (signal) =>
      [...(await machines.watch.whole(signal))].map(([id, { HostProperties, Tags }]) => {
        const resources = hostAmounts(HostProperties?.InstanceType);
        return { id, tag: tagOf(metadataOf(Tags)), resources };
      }),
    delete: (id, signal) => machines.delete(id, signal),
  };

  const steps: Pick<MachineWork<Instance, string | null>, "before" | "last"> = {
    /** Steps host and host-wait of a launch. `found`: the instance of an earlier attempt. Null: the label wants none. */
    async *before(order: AwsOrder, found, saving, { signal, externalId }) {
      if (!order.label.own.dedicatedHost || found !== undefined) return found?.Placement?.HostId ?? null;
      // A launcher that died between host and instance left a host, which is paid for by the hour.
      let host = (await machines.existing(order.tag, externalId, signal))?.HostId;
      if (host === undefined) {
        yield { step: "host", deadlineMs: launchTimeoutMs };
        host = await machines.create(order.tag, allocation(aws, order, tagsFor(order, log)), signal);
      }
      // The host is saved before the instance is made: it costs money from now on.
      yield { step: "host-wait", deadlineMs: launchTimeoutMs, ...saving({ host }) };
      await machines.up(host, placeOf(order.tag), signal);
      return host;
    },

    /** Step host of a removal, last: EC2 does not release one with an instance. */
    async *last(tag, { signal, externalId }) {
      // A pool without dedicated hosts has none, unless it had them before a reload: then the stored id shows it.
      const pool = pools.find(({ name }) => name === tag.pool);
      const mayHaveHost = !pool || [...pool.labels.values()].some(({ own }) => own.dedicatedHost);
      if (!mayHaveHost && idsOf(externalId).host === undefined) return;
      const host = (await machines.existing(tag, externalId, signal))?.HostId;
      if (host !== undefined) {
        yield { step: "host", deadlineMs: GONE_MS };
        await machines.delete(host, signal);
        await machines.gone(host, placeOf(tag), signal);
      }
      machines.forget(tag);
    },
  };

  return { part, steps, close: () => machines.close() };
}

/** A host that was released is listed for a while. It costs nothing, and cannot be used any more (EC2 API Reference, "Host"). */
function isReleased({ State }: Host): boolean {
  return /^released/.test(State ?? "");
}

/** EC2 reports a host that is in use in a successful answer (`Unsuccessful`), not by an error. */
async function refusedReleases(aws: Aws, HostIds: string[], signal: AbortSignal): Promise<Refused> {
  const { Unsuccessful = [] } = await aws.call("ec2.releaseHosts", { HostIds }, signal);
  const refused = new Map<string, ApiError>();
  for (const { ResourceId: id = "", Error: { Code = "Unknown", Message: text = "" } = {} } of Unsuccessful) {
    const codes = [Code.replace(/^Client\./, "")];
    refused.set(id, new ApiError(`the release of host ${id}`, { status: 200, text }, { codes }));
  }
  return refused;
}

/** The call that allocates a host in the zone. It costs money from then on. A repeated call with the same attempt gets the same host. */
function allocation(aws: Aws, order: AwsOrder, tags: Metadata): MakeCall {
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
    const [id] = (await aws.call("ec2.allocateHosts", request, signal)).HostIds ?? [];
    return orThrow(id, "AllocateHosts answered without a host", "transient");
  };
}
