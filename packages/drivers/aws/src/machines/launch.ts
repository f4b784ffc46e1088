import type { EbsBlockDevice, RunInstancesRequest } from "@aws-sdk/client-ec2";
import { type Log, labelTags, type Metadata, noImage, orThrow, present } from "@nodeyard/driver";
import type { Site } from "../account.ts";
import type { Aws } from "../client/aws.ts";
import type { AwsLabelOwn, AwsOrder, AwsPoolOwn } from "../config.ts";
import type { VolumeKeys } from "../config-table.ts";
import type { RootDevice } from "../lookups.ts";
import { tagSpecifications } from "../tags.ts";

/** What a launch sends of what its label and pool name, and of what was made for it. */
export type Resolved = Awaited<ReturnType<typeof resolvedOf>>;

/** The pool's subnet in the zone; of several, the one with the most free addresses. Null: EC2 chooses one of the zone, or of any zone. */
async function subnetOf({ lookups }: Site, { pool, az }: AwsOrder, signal: AbortSignal) {
  const { subnets: names } = pool.own;
  // No list is needed.
  if (names.length <= 1) return names[0] ?? null;
  const [best] = (await lookups.subnets(names, signal))
    .filter(({ AvailabilityZone }) => az === null || AvailabilityZone === az)
    .sort((a, b) => (b.AvailableIpAddressCount ?? 0) - (a.AvailableIpAddressCount ?? 0));
  return orThrow(best?.SubnetId, `pool ${pool.name} has no subnet in zone ${az}; correct subnet-ids`);
}

/** `host`: the dedicated host; null for labels without one. Rejects with "configuration" for what EC2 does not know. */
export async function resolvedOf(site: Site, order: AwsOrder, host: string | null, signal: AbortSignal) {
  const { lookups, log } = site;
  const { label, imageExternalId: uploaded } = order;
  // The upload's AMI, which the launcher chose, wins over a source, which only labels with a cloud image have.
  const source = typeof uploaded === "string" ? { id: uploaded } : label.own.source;
  if (source === null) throw noImage(label);
  const imageId = await lookups.image(source, signal);
  const [root, subnet] = await Promise.all([lookups.root(imageId, signal), subnetOf(site, order, signal)]);
  return { imageId, root, subnet, host, tags: tagsFor(order, log) };
}

/** Makes exactly one machine without a fleet, and returns its id. */
export async function runInstance(aws: Aws, body: RunInstancesRequest, signal: AbortSignal): Promise<string> {
  const { Instances } = await aws.call("ec2.runInstances", body, signal);
  return orThrow(Instances?.[0]?.InstanceId, "RunInstances answered without an instance", "transient");
}

/** Tags of a machine and of what is made with it. */
export function tagsFor(order: AwsOrder, log: Log): Metadata {
  return { ...labelTags(order, log), Name: order.hostname };
}

/** Absent settings are left out, so that the AMI's and the account's defaults apply. */
export function runBody(
  { label: { own }, pool, az }: AwsOrder,
  { imageId, root, subnet, host, tags }: Resolved,
  ClientToken: string,
): RunInstancesRequest {
  // Affinity "host": the instance belongs to this host, also after a stop.
  const onHost = host === null ? {} : ({ HostId: host, Tenancy: "host", Affinity: "host" } as const);
  return {
    ...{ MinCount: 1, MaxCount: 1, ClientToken, ImageId: imageId },
    InstanceType: own.instanceType as RunInstancesRequest["InstanceType"],
    EbsOptimized: own.ebsOptimized,
    // What may be left over is tagged in the same call.
    TagSpecifications: tagSpecifications(["instance", "volume", "network-interface"], tags),
    NetworkInterfaces: [interfaceOf(pool.own, subnet)],
    BlockDeviceMappings: rootMapping(own, root),
    ...commonBody(own),
    ...(own.spot && { InstanceMarketOptions: SPOT }),
    Placement: { ...present({ AvailabilityZone: az }), ...onHost },
  };
}

/** A one-time spot request: EC2 terminates the instance when it interrupts it and makes no new one. */
const SPOT = {
  MarketType: "spot",
  SpotOptions: { SpotInstanceType: "one-time", InstanceInterruptionBehavior: "terminate" },
} as const;

/** With an interface in the request, EC2 refuses a subnet or groups beside it, so they are set here. */
export function interfaceOf({ publicIpv4, publicIpv6, securityGroup }: AwsPoolOwn, subnet: string | null) {
  return {
    ...{ DeviceIndex: 0, AssociatePublicIpAddress: publicIpv4 },
    ...(publicIpv6 && { Ipv6AddressCount: 1 }),
    ...(securityGroup !== null && { Groups: [securityGroup] }),
    ...present({ SubnetId: subnet }),
  };
}

/** Settings of a label that RunInstances and launch templates take alike. */
export function commonBody({ keyName, userData, imdsv2, profile }: AwsLabelOwn) {
  return present({
    KeyName: keyName,
    // The SDK does not encode it.
    UserData: userData === null ? null : Buffer.from(userData, "utf8").toString("base64"),
    // "required": the metadata service answers only requests with a session token (version 2).
    MetadataOptions: imdsv2 === null ? null : ({ HttpTokens: imdsv2, HttpEndpoint: "enabled" } as const),
    IamInstanceProfile: profile === null ? null : present({ Name: profile.name, Arn: profile.arn }),
  });
}

/** Root volume: the AMI's settings with the label's changes. None when the AMI has no EBS root and the label changes nothing. */
function rootMapping(own: AwsLabelOwn, root: RootDevice) {
  const changes = volumeOptions(own);
  if (root.ebs === null && Object.keys(changes).length === 0) return [];
  // Left out, so that the snapshot and the account's default decide about encryption, unless the label demands it.
  const { Encrypted: _, Iops, Throughput, ...ebs } = root.ebs ?? {};
  // EC2 refuses IOPS or throughput of another volume type.
  const sameType = own.volumeType === null || own.volumeType === root.ebs?.VolumeType;
  const speed = sameType ? present({ Iops, Throughput }) : {};
  return [{ DeviceName: root.name, Ebs: { ...ebs, ...speed, DeleteOnTermination: true, ...changes } }];
}

/** The settings of a root volume; keys that are not set are missing. */
export function volumeOptions(own: VolumeKeys & Partial<AwsLabelOwn>): EbsBlockDevice {
  return present({
    VolumeType: own.volumeType as EbsBlockDevice["VolumeType"] | null,
    ...{ VolumeSize: own.volumeSize, Iops: own.iops, Throughput: own.throughput },
    ...(own.volumeEncrypted && { Encrypted: true, KmsKeyId: own.volumeKmsKey }),
  });
}
