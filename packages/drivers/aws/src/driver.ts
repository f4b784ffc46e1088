import type { Instance } from "@aws-sdk/client-ec2";
import {
  CALL_MS,
  type Cloud,
  type CloudPart,
  cloudDriver,
  type Driver,
  DriverError,
  launchedLabels,
  type MachineTable,
  type OpenFile,
  tagOf,
} from "@nodeyard/driver";
import { AwsAccount, type Site } from "./account.ts";
import type { Aws } from "./client/aws.ts";
import { type AwsOrder, type AwsProviderConfig, awsConfig, machineType } from "./config.ts";
import type { sdk } from "./edge/sdk.ts";
import { mapError } from "./errors.ts";
import { awsImages } from "./images/store.ts";
import { fleetsOf } from "./machines/fleets.ts";
import { hostsOf } from "./machines/hosts.ts";
import { instancesOf, isInterrupted } from "./machines/instances.ts";
import { resolvedOf, runBody, runInstance } from "./machines/launch.ts";
import { followNotices } from "./notices.ts";
import { pricesOf } from "./prices.ts";
import { labelAmounts, labelCodes, listedAmounts, quotasOf, volumeAmounts } from "./quota.ts";
import { metadataOf } from "./tags.ts";

/** Dependencies of the driver on its host. Tests pass their own. */
export interface AwsHost {
  /** The modules of Amazon's SDK, each loaded at its first use. */
  readonly sdk: typeof sdk;
  readonly openFile: OpenFile;
}

/** The driver on a given host. */
export function createAwsDriver({ sdk: modules, openFile }: AwsHost): Driver<AwsProviderConfig> {
  return cloudDriver<AwsProviderConfig, AwsAccount, Instance, string | null>(
    { name: "aws", config: awsConfig, mapError },
    (config, context, closed) => {
      const place = modules.placeOf(config.own);
      return {
        // Profile and region stand for the credential. Two profiles of one account have limiters of their own and are throttled by AWS together.
        key: JSON.stringify(place),
        intervalMs: config.own.intervalMs,
        account: () => new AwsAccount({ ...context, place, sdk: modules }),
        cloud(account) {
          const { aws, instances, lookups, terminate } = account;
          const site = { ...context, aws, instances, lookups, terminate, config, openFile, closed };
          return awsCloud(site, account);
        },
      };
    },
  );
}

/** A provider of an account and region. */
function awsCloud(site: Site, account: AwsAccount): Cloud<Instance, string | null, MachineTable<Instance>> {
  const { aws, lookups, config, purpose } = site;
  const { own } = config;
  const hosts = hostsOf(site);
  const instances = instancesOf(site);
  const fleets = fleetsOf(site);
  const labels = config.pools.flatMap(launchedLabels);
  // Only these quotas count. Others of the account have nothing to do with the labels, and a quota of 0 must not stop the provider.
  const codes = new Set(labels.flatMap((label) => labelCodes(label.own)));
  const images = awsImages(site);
  return {
    ...{ machines: instances.machines, suspends: instances.suspends },
    // The call may take as long as the whole launch: most of that time it waits at the rate limit.
    makeMs: config.launchTimeoutMs,
    ...hosts.steps,
    /** EC2's client token makes a repeated call return the same instance. */
    async make(order: AwsOrder, host, signal) {
      const { own: label, name } = order.label;
      // The loader only warns, because Nodepool's validator accepts such a label.
      if (label.instanceType === null && label.fleet === null)
        throw new DriverError("configuration", `label ${name} has no size; add instance-type or fleet`);
      const resolved = await resolvedOf(site, order, host ?? null, signal);
      return instances.launching(order, (token, until) =>
        label.fleet === null
          ? runInstance(aws, runBody(order, resolved, token), until)
          : fleets.run(order, resolved, token, until),
      );
    },
    stored: (instance, host) => ({ ...(host != null && { host }), instance }),
    async describe({ label, hostname, az }: AwsOrder, instance, _, signal) {
      // Of the instance, since a fleet chooses the type. Known types cost no call.
      const info = await lookups.type(instance.InstanceType ?? "", signal);
      return {
        publicIpv4: instance.PublicIpAddress || null,
        privateIpv4: instance.PrivateIpAddress || null,
        publicIpv6: instance.NetworkInterfaces?.[0]?.Ipv6Addresses?.[0]?.Ipv6Address || null,
        ...{ hostname, cloud: "AWS", region: await aws.region(signal) },
        az: instance.Placement?.AvailabilityZone ?? az,
        type: machineType(label.own, instance.InstanceType),
        // The instance type of a fleet's machine is known only after the launch.
        resources: label.own.fleet === null ? labelAmounts(label.own, info) : listedAmounts(instance, info),
      };
    },
    /** Step tell of a removal, for a machine that EC2 has taken back: before the deletion, which EC2 would then name as the reason of its end. */
    async *first(_, found, step) {
      const remark = await instances.interruption(found, step);
      if (remark !== undefined) yield { step: "tell", deadlineMs: CALL_MS, remark };
    },
    parts: { host: hosts.part, ...besideInstances(aws, codes), ...images.parts },
    partsOf: ({ Placement }) => [Placement?.HostId],
    // It still runs for two minutes.
    isEnding: isInterrupted,
    // One whose type cannot be read, such as of others, counts as a machine only.
    async amounts(instance, signal) {
      const info = await lookups.type(instance.InstanceType ?? "", signal).catch(() => undefined);
      return listedAmounts(instance, info);
    },
    quota: (signal) => quotasOf(site, codes, signal),
    async need({ own: label }: AwsOrder["label"], signal) {
      const { instanceType: type } = label;
      return labelAmounts(label, type === null ? null : await lookups.type(type, signal));
    },
    // EC2 keeps the last 64 KiB, and shows them some minutes late.
    async console(InstanceId, signal) {
      const { Output = "" } = await aws.call("ec2.getConsoleOutput", { InstanceId }, signal);
      return Buffer.from(Output, "base64").toString();
    },
    async zones({ own: pool }: AwsOrder["pool"], signal) {
      // A zone without a subnet of the pool cannot be chosen, whatever the region has.
      const subnets = await lookups.subnets(pool.subnets, signal);
      return [...new Set(subnets.flatMap(({ AvailabilityZone: zone }) => zone ?? []))].sort();
    },
    ...{ limiter: aws.pace.writes, images: images.store },
    ...(own.priceApi && { prices: pricesOf(site) }),
    handover: { ready: instances.ready },
    ...{ place: () => account.place, close: hosts.close },
    async check(signal) {
      await site.instances.all(signal, false);
      await account.locate(signal);
      // A message that is taken is gone for all others, so only a launcher, which can tell the users, takes any.
      if (purpose === "look") return;
      await fleets.reconcile(signal);
      const hasNotices = own.noticeQueue !== null || labels.some((label) => label.own.spot);
      if (hasNotices) void followNotices(site);
    },
  };
}

/** What stands beside instances, but for hosts, in the whole account. Ours was tagged by the call that made it; Nodepool's gets no tag. */
function besideInstances(aws: Aws, codes: ReadonlySet<string>): Readonly<Record<string, CloudPart>> {
  return {
    volume: {
      async list(signal) {
        // Those of other users use the same quota.
        const all = await aws.list("ec2.describeVolumes", "Volumes", {}, signal);
        return all.flatMap(({ VolumeId: id, Attachments = [], State, Tags, VolumeType, Size, Iops }) => {
          if (id === undefined || State === "deleted" || State === "deleting") return [];
          // A volume in another state is attached or being attached, so a deletion would fail, or hit a machine that has just come up.
          const isFree = State === "available" || State === "error";
          const tag = isFree ? tagOf(metadataOf(Tags)) : null;
          const on = Attachments.map(({ InstanceId }) => InstanceId);
          // A label's need has those that it says, and a listed machine must not show more.
          const used = Object.entries(volumeAmounts(VolumeType, Size, Iops));
          return [{ id, on, tag, resources: Object.fromEntries(used.filter(([code]) => codes.has(code))) }];
        });
      },
      delete: (VolumeId, signal) => aws.maybe("ec2.deleteVolume", { VolumeId }, signal),
    },
    // Tagged ones without a machine. EC2 deletes them with their machine unless that fails. They use no quota that is counted here.
    interface: {
      async list(signal) {
        const Filters = [
          { Name: "status", Values: ["available"] },
          { Name: "tag-key", Values: ["nodeyard_installation"] },
        ];
        const all = await aws.list("ec2.describeNetworkInterfaces", "NetworkInterfaces", { Filters }, signal);
        return all.map(({ NetworkInterfaceId: id = "", TagSet }) => ({ id, tag: tagOf(metadataOf(TagSet)) }));
      },
      delete: (NetworkInterfaceId, signal) =>
        aws.maybe("ec2.deleteNetworkInterface", { NetworkInterfaceId }, signal),
    },
  };
}
