import type { Instance } from "@aws-sdk/client-ec2";
import { CALL_MS, type ExternalId, GONE_MS, labelTags, type MachineWork, type Tag } from "@nodeyard/driver";
import type { AwsOrder } from "../config.ts";
import { labelAmounts, listedAmounts } from "../quota/amounts.ts";
import { machineType } from "./bodies.ts";
import { allocation } from "./hosts.ts";
import { idsOf } from "./instances.ts";
import { interruptionOf } from "./interruptions.ts";
import { launchCall, type Parts } from "./launch.ts";

/**
 * Beside the kit's steps a launch has host and host-wait (dedicated hosts only), and a removal tell (for a machine that EC2 has taken back)
 * and host, last: EC2 does not release one with an instance.
 */
export function instanceWork(parts: Parts): MachineWork<Instance, string | null> {
  const { instances, hosts, config } = parts;
  const { launchTimeoutMs } = config;
  const placeOf = ({ nodeId }: Tag) => `${config.name}: node ${nodeId}`;
  return {
    machines: instances.machines,
    // The call may take as long as the whole launch: most of that time it waits at the rate limit.
    makeMs: launchTimeoutMs,
    async *before(order: AwsOrder, found, saving, { signal, externalId }) {
      const { own } = order.label;
      if (!own.dedicatedHost || found !== undefined) return found?.Placement?.HostId ?? null;
      // A launcher that died between host and instance left a host, which is paid for by the hour.
      let host = (await hosts.existing(order.tag, externalId, signal))?.HostId;
      if (host === undefined) {
        yield { step: "host", deadlineMs: launchTimeoutMs };
        const tags = { ...labelTags(order, parts.log), Name: order.hostname };
        host = await hosts.create(order.tag, allocation(parts.account, order, tags), signal);
      }
      // The host is saved before the instance is made: it costs money from now on.
      yield { step: "host-wait", deadlineMs: launchTimeoutMs, ...saving({ host }) };
      await hosts.up(host, placeOf(order.tag), signal);
      return host;
    },
    make: (order: AwsOrder, host, signal) => launchCall(parts, order, host ?? null, signal),
    stored: (instance, host) => ({ ...(host != null && { host }), instance }),
    describe: (order: AwsOrder, instance, _, signal) => described(parts, order, instance, signal),
    async *first(_, found, context) {
      // Before the deletion, which EC2 would then name as the reason why the machine ended.
      const remark = await interruptionOf(parts, found, context);
      if (remark !== undefined) yield { step: "tell", deadlineMs: CALL_MS, remark };
    },
    async *last(tag, { signal, externalId }) {
      if (!mayHaveHost(parts, tag, externalId)) return;
      const host = (await hosts.existing(tag, externalId, signal))?.HostId;
      if (host !== undefined) {
        yield { step: "host", deadlineMs: GONE_MS };
        await hosts.delete(host, signal);
        await hosts.gone(host, placeOf(tag), signal);
      }
      hosts.forget(tag);
    },
  };
}

/**
 * Whether the node may have a host. A pool without dedicated hosts has none, unless it had them before a reload: then the stored id shows
 * it.
 */
function mayHaveHost({ config }: Parts, tag: Tag, externalId: ExternalId | null): boolean {
  if (idsOf(externalId).host !== undefined) return true;
  const pool = config.pools.find(({ name }) => name === tag.pool);
  return pool === undefined || [...pool.labels.values()].some(({ own }) => own.dedicatedHost);
}

async function described({ account }: Parts, order: AwsOrder, instance: Instance, signal: AbortSignal) {
  const { own } = order.label;
  // Of the instance, since a fleet chooses the type. Known types cost no call.
  const info = await account.lookups.type(instance.InstanceType ?? "", signal);
  return {
    publicIpv4: instance.PublicIpAddress || null,
    privateIpv4: instance.PrivateIpAddress || null,
    publicIpv6: instance.NetworkInterfaces?.[0]?.Ipv6Addresses?.[0]?.Ipv6Address || null,
    hostname: order.hostname,
    cloud: "AWS",
    region: await account.aws.region(signal),
    az: instance.Placement?.AvailabilityZone ?? order.az,
    type: machineType(own, instance.InstanceType),
    // The instance type of a fleet's machine is known only after the launch.
    resources: own.fleet === null ? labelAmounts(own, info) : listedAmounts(instance, info),
  };
}
