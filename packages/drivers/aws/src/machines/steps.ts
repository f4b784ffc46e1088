import type { Instance } from "@aws-sdk/client-ec2";
import {
  CALL_MS,
  type CreateOrder,
  DriverError,
  type ExternalId,
  GONE_MS,
  type LabelConfig,
  type Machine,
  type MachineWork,
  type MakeCall,
  type Tag,
} from "@nodeyard/driver";
import type { AwsLabelOwn, AwsPoolOwn } from "../config.ts";
import { labelAmounts, listedAmounts } from "../quota/amounts.ts";
import { runFleet } from "./fleet.ts";
import { idsOf, runInstance } from "./instances.ts";
import { interruptionOf } from "./interruptions.ts";
import type { Parts } from "./parts.ts";
import { machineType, type Resolved, runBody, tagsOf } from "./run-body.ts";

/**
 * Beside the kit's steps a launch has host and host-wait (dedicated hosts only), and a removal tell (for a machine that EC2 has taken back)
 * and host, last: EC2 does not release one with an instance.
 */
export function instanceWork(parts: Parts): MachineWork<Instance, string | null> {
  const { instances, hosts, config } = parts;
  const { launchTimeoutMs } = config;
  return {
    machines: instances,
    // The call may take as long as the whole launch: most of that time it waits at the rate limit.
    makeMs: launchTimeoutMs,
    async *before(order, found, saving, { signal, externalId }) {
      const { own } = order.label as LabelConfig<AwsLabelOwn>;
      if (!own.dedicatedHost || found !== undefined) return found?.Placement?.HostId ?? null;
      // A launcher that died between host and instance left a host, which is paid for by the hour.
      let host = await hosts.existing(order.tag, idsOf(externalId).host, signal);
      if (host === undefined) {
        yield { step: "host", deadlineMs: launchTimeoutMs };
        host = await hosts.allocate(order, order.az, tagsOf(order, parts.log), signal);
      }
      // The host is saved before the instance is made: it costs money from now on.
      yield { step: "host-wait", deadlineMs: launchTimeoutMs, ...saving({ host }) };
      await hosts.available(host, `${config.name}: node ${order.tag.nodeId}`, signal);
      return host;
    },
    make: (order, host, signal) => launchCall(parts, order, host ?? null, signal),
    stored: (instance, host) => ({ ...(host != null && { host }), instance }),
    describe: (order, instance, { externalId }, signal) =>
      describeMachine(parts, order, instance, externalId, signal),
    async *first(_, found, context) {
      // Before the deletion, which EC2 would then name as the reason why the machine ended.
      const remark = await interruptionOf(parts, found, context);
      if (remark !== undefined) yield { step: "tell", deadlineMs: CALL_MS, remark };
    },
    async *last(tag, { signal, externalId }) {
      if (!mayHaveHost(parts, tag, externalId)) return;
      const host = await hosts.existing(tag, idsOf(externalId).host, signal);
      if (host === undefined) return;
      yield { step: "host", deadlineMs: GONE_MS };
      await hosts.release(host, signal);
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

/** Runs one instance, directly or by a fleet. EC2's client token makes a repeated call return the same instance. */
async function launchCall(
  parts: Parts,
  order: CreateOrder,
  host: string | null,
  signal: AbortSignal,
): Promise<MakeCall> {
  const { account, instances, log } = parts;
  const { own, name } = order.label as LabelConfig<AwsLabelOwn>;
  // The loader only warns, because Nodepool's validator accepts such a label.
  if (own.instanceType === null && own.fleet === null)
    throw new DriverError("configuration", `label ${name} has no size; add instance-type or fleet`);
  const resolved = await resolve(parts, order, host, signal);
  return instances.launching(order, (token, until) =>
    own.fleet === null
      ? runInstance(account, runBody(order, resolved, token, log), until)
      : runFleet(parts, order, resolved, token, until),
  );
}

/** The ids that the call needs, from the names of the configuration. Rejects with "configuration" for a name that EC2 does not know. */
async function resolve(
  { account, imageOf }: Parts,
  order: CreateOrder,
  host: string | null,
  signal: AbortSignal,
): Promise<Resolved> {
  const imageId = await imageOf(order, signal);
  const [root, subnet] = await Promise.all([
    account.lookups.root(imageId, signal),
    subnetOf(account, order, signal),
  ]);
  return { imageId, root, subnet, zone: order.az, host };
}

/** The pool's subnet in the zone; of several, the one with the most free addresses. Null: the pool names none. */
async function subnetOf(
  account: Parts["account"],
  { pool, az }: CreateOrder,
  signal: AbortSignal,
): Promise<string | null> {
  const { subnets: names } = pool.own as AwsPoolOwn;
  // No list is needed. Without subnets EC2 takes the default one of the zone.
  if (names.length <= 1) return names[0] ?? null;
  const subnets = await account.lookups.subnets(names, signal);
  const inZone = subnets.filter(({ AvailabilityZone }) => az === null || AvailabilityZone === az);
  const [best] = inZone.toSorted(
    (a, b) => (b.AvailableIpAddressCount ?? 0) - (a.AvailableIpAddressCount ?? 0),
  );
  if (best?.SubnetId === undefined)
    throw new DriverError(
      "configuration",
      `pool ${pool.name} has no subnet in zone ${az}; correct subnet-ids`,
    );
  return best.SubnetId;
}

/** The machine as the launcher gets it. IPv6 comes before a private IPv4 address, which clients outside of the VPC cannot reach. */
async function describeMachine(
  { account }: Parts,
  order: CreateOrder,
  instance: Instance,
  externalId: ExternalId,
  signal: AbortSignal,
): Promise<Machine> {
  const { own } = order.label as LabelConfig<AwsLabelOwn>;
  const publicIpv4 = instance.PublicIpAddress || null;
  const privateIpv4 = instance.PrivateIpAddress || null;
  const publicIpv6 = instance.NetworkInterfaces?.[0]?.Ipv6Addresses?.[0]?.Ipv6Address || null;
  // Of the instance, since a fleet chooses the type. Known types cost no call.
  const info = await account.lookups.type(instance.InstanceType ?? "", signal);
  const az = instance.Placement?.AvailabilityZone ?? order.az;
  return {
    externalId,
    interfaceIp: publicIpv4 ?? publicIpv6 ?? privateIpv4,
    publicIpv4,
    privateIpv4,
    publicIpv6,
    hostname: order.hostname,
    cloud: "AWS",
    region: await account.aws.region(signal),
    az,
    type: machineType(own, instance.InstanceType),
    // The instance type of a fleet's machine is known only after the launch.
    resources: own.fleet === null ? labelAmounts(own, info) : listedAmounts(instance, info),
  };
}
