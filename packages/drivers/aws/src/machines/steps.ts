import type { Instance } from "@aws-sdk/client-ec2";
import {
  type CreateOrder,
  DriverError,
  type ExternalId,
  type LabelConfig,
  type Machine,
  type Step,
  type StepContext,
  type Tag,
} from "@nodeyard/driver";
import type { AwsLabelOwn, AwsPoolOwn } from "../config.ts";
import { labelAmounts, listedAmounts } from "../quota/amounts.ts";
import { runFleet } from "./fleet.ts";
import { hasEnded, idsOf, type MachineIds, runInstance } from "./instances.ts";
import { interruptionOf } from "./interruptions.ts";
import type { Parts } from "./parts.ts";
import { machineType, type Resolved, runBody, tagsOf } from "./run-body.ts";

/** Milliseconds for one call, with its wait for the rate limit. */
const CALL_MS = 120_000;
/** Milliseconds for EC2 to end a machine. */
const GONE_MS = 600_000;

/**
 * Makes the machine of an order, see `Provider.create`. Steps: find, discard (only a machine that has ended), host and host-wait
 * (dedicated hosts only), instance, wait. A continued launch goes on with the host or instance that it finds.
 */
export async function* createMachine(
  parts: Parts,
  order: CreateOrder,
  { signal, externalId }: StepContext,
): AsyncGenerator<Step, Machine, void> {
  const { instances, hosts, config } = parts;
  const { own } = order.label as LabelConfig<AwsLabelOwn>;
  const place = `${config.name}: node ${order.tag.nodeId}`;
  let stored = externalId;
  // Ids are saved only when they are new: each save is a commit to the tree.
  const saving = (ids: MachineIds) => {
    const save = sameIds(stored, ids) ? {} : { save: { externalId: { ...ids } } };
    stored = { ...ids };
    return save;
  };
  // An interrupted attempt may have made the machine already. One that has ended cannot be used, and its tag must be free again.
  yield { step: "find", deadlineMs: CALL_MS };
  let found = await instances.existing(order.tag, externalId, signal);
  if (found !== undefined && hasEnded(found)) {
    yield { step: "discard", deadlineMs: GONE_MS };
    await instances.delete(found.InstanceId!, signal);
    await instances.gone(found.InstanceId!, signal);
    found = undefined;
  }
  let host = found?.Placement?.HostId ?? null;
  if (own.dedicatedHost && found === undefined) {
    // A launcher that died between host and instance left a host, which is paid for by the hour.
    host = (await hosts.existing(order.tag, idsOf(externalId).host, signal)) ?? null;
    if (host === null) {
      yield { step: "host", deadlineMs: config.launchTimeoutMs };
      host = await hosts.allocate(order, order.az, tagsOf(order, parts.log), signal);
    }
    // The host is saved before the instance is made: it costs money from now on.
    yield { step: "host-wait", deadlineMs: config.launchTimeoutMs, ...saving({ host }) };
    await hosts.available(host, place, signal);
  }
  const onHost = host === null ? {} : { host };
  let id = found?.InstanceId;
  if (id === undefined) {
    // The step may take as long as the whole launch: most of that time it waits at the rate limit.
    yield { step: "instance", deadlineMs: config.launchTimeoutMs };
    id = await makeInstance(parts, order, host, signal);
  }
  yield { step: "wait", deadlineMs: config.launchTimeoutMs, ...saving({ ...onHost, instance: id }) };
  const running = await instances.running(id, place, signal);
  return describeMachine(parts, order, running, { ...onHost, instance: id }, signal);
}

/** Removes the machine of a tag, see `Provider.remove`. The host goes last: EC2 does not release one with an instance. */
export async function* removeMachine(
  parts: Parts,
  tag: Tag,
  { signal, externalId }: StepContext,
): AsyncGenerator<Step, void, void> {
  const { instances, hosts } = parts;
  yield { step: "find", deadlineMs: CALL_MS };
  const found = await instances.existing(tag, externalId, signal);
  // Before the deletion, which EC2 would then name as the reason why the machine ended.
  const remark = await interruptionOf(parts, found, { signal, externalId });
  if (remark !== undefined) yield { step: "tell", deadlineMs: CALL_MS, remark };
  if (found?.InstanceId !== undefined) {
    yield { step: "delete", deadlineMs: GONE_MS };
    await instances.delete(found.InstanceId, signal);
    yield { step: "gone", deadlineMs: GONE_MS };
    await instances.gone(found.InstanceId, signal);
  }
  if (mayHaveHost(parts, tag, externalId)) {
    const host = await hosts.existing(tag, idsOf(externalId).host, signal);
    if (host !== undefined) {
      yield { step: "host", deadlineMs: GONE_MS };
      await hosts.release(host, signal);
    }
  }
  instances.forget(tag);
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
async function makeInstance(
  parts: Parts,
  order: CreateOrder,
  host: string | null,
  signal: AbortSignal,
): Promise<string> {
  const { account, instances, log } = parts;
  const { own, name } = order.label as LabelConfig<AwsLabelOwn>;
  // The loader only warns, because Nodepool's validator accepts such a label.
  if (own.instanceType === null && own.fleet === null)
    throw new DriverError("configuration", `label ${name} has no size; add instance-type or fleet`);
  const resolved = await resolve(parts, order, host, signal);
  return instances.create(
    order.tag,
    order.attempt,
    (token, until) =>
      own.fleet === null
        ? runInstance(account, runBody(order, resolved, token, log), until)
        : runFleet(parts, order, resolved, token, until),
    signal,
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

/** Whether the stored id is up to date. A plain string of an older version is not, because it has no host. */
function sameIds(stored: ExternalId | null, { instance, host }: MachineIds): boolean {
  if (typeof stored !== "object") return false;
  const known = idsOf(stored);
  return known.instance === instance && known.host === host;
}

/** The machine as the launcher gets it. IPv6 comes before a private IPv4 address, which clients outside of the VPC cannot reach. */
async function describeMachine(
  { account }: Parts,
  order: CreateOrder,
  instance: Instance,
  externalId: MachineIds,
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
    externalId: { ...externalId },
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
    resources: own.fleet === null ? labelAmounts(own, info) : listedAmounts(instance, info, new Map()),
  };
}
