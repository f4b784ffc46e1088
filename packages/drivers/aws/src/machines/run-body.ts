import { Buffer } from "node:buffer";
import type { EbsBlockDevice, RunInstancesRequest, TagSpecification } from "@aws-sdk/client-ec2";
import {
  type CreateOrder,
  filledTemplates,
  type LabelConfig,
  type Log,
  type Metadata,
  machineMetadata,
} from "@nodeyard/driver";
import type { AwsLabelOwn, AwsPoolOwn } from "../config.ts";
import type { RootDevice } from "../lookups.ts";
import { tagListOf } from "../tags.ts";

/** Resolved settings of a launch. */
export interface Resolved {
  readonly imageId: string;
  readonly root: RootDevice;
  /** Null: EC2 chooses a subnet of the zone, or of any zone. */
  readonly subnet: string | null;
  /** The zone that the scheduler chose; null: EC2 chooses. */
  readonly zone: string | null;
  /** The dedicated host; null for labels without one. */
  readonly host: string | null;
}

/**
 * Machine type of a label for grouping and prices. Labels of one type and market fail together and cost the same. `chosen`: the type that a
 * fleet chose.
 */
export function machineType(
  { instanceType, fleet, spot, dedicatedHost }: AwsLabelOwn,
  chosen?: string | undefined,
): string {
  const types = fleet === null ? `${instanceType}` : (chosen ?? fleet.instanceTypes.join("/"));
  return `${types}${spot ? ", spot" : ""}${dedicatedHost ? ", dedicated host" : ""}`;
}

/** Body of RunInstances: exactly one machine. Absent settings are left out, so that the AMI's and the account's defaults apply. */
export function runBody(
  order: CreateOrder,
  resolved: Resolved,
  token: string,
  log: Pick<Log, "warn">,
): RunInstancesRequest {
  const { own } = order.label as LabelConfig<AwsLabelOwn>;
  const pool = order.pool.own as AwsPoolOwn;
  const { zone, host, subnet } = resolved;
  const device = rootMapping(own, resolved.root);
  return {
    MinCount: 1,
    MaxCount: 1,
    ClientToken: token,
    ImageId: resolved.imageId,
    InstanceType: own.instanceType as RunInstancesRequest["InstanceType"],
    EbsOptimized: own.ebsOptimized,
    TagSpecifications: tagSpecifications(MADE, tagsOf(order, log)),
    NetworkInterfaces: [
      {
        DeviceIndex: 0,
        // With an interface in the request, EC2 refuses a subnet or groups beside it, so they are set here.
        AssociatePublicIpAddress: pool.publicIpv4,
        ...(pool.publicIpv6 && { Ipv6AddressCount: 1 }),
        ...(pool.securityGroup !== null && { Groups: [pool.securityGroup] }),
        ...(subnet !== null && { SubnetId: subnet }),
      },
    ],
    ...(own.keyName !== null && { KeyName: own.keyName }),
    ...(device !== undefined && { BlockDeviceMappings: [device] }),
    ...(own.userData !== null && { UserData: base64(own.userData) }),
    ...(own.profile !== null && profileOf(own.profile)),
    ...(own.imdsv2 !== null && { MetadataOptions: metadataOptions(own.imdsv2) }),
    ...(own.spot && { InstanceMarketOptions: SPOT }),
    ...(host !== null
      ? {
          // Affinity "host": the instance belongs to this host, also after a stop.
          Placement: {
            Tenancy: "host",
            HostId: host,
            Affinity: "host",
            ...(zone !== null && { AvailabilityZone: zone }),
          },
        }
      : zone !== null && { Placement: { AvailabilityZone: zone } }),
  };
}

/** Resource types that RunInstances makes and that may be left over. They are tagged in the same call. */
const MADE = ["instance", "volume", "network-interface"] as const;

/** A one-time spot request: EC2 terminates the instance when it interrupts it and makes no new one. */
const SPOT = {
  MarketType: "spot",
  SpotOptions: { SpotInstanceType: "one-time", InstanceInterruptionBehavior: "terminate" },
} as const;

/** User data must be base64-encoded by the caller; the SDK does not do it. */
export function base64(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}

/** "required": the metadata service answers only requests with a session token (version 2). */
export function metadataOptions(tokens: NonNullable<AwsLabelOwn["imdsv2"]>) {
  return { HttpTokens: tokens, HttpEndpoint: "enabled" } as const;
}

/** The schema allows one of name and ARN. */
function profileOf({ name, arn }: NonNullable<AwsLabelOwn["profile"]>) {
  if (name !== null) return { IamInstanceProfile: { Name: name } };
  return arn === null ? {} : { IamInstanceProfile: { Arn: arn } };
}

/** The same tags for each type of resource that a call makes, so that nothing of ours is ever untagged. */
export function tagSpecifications(
  types: readonly TagSpecification["ResourceType"][],
  metadata: Metadata,
): TagSpecification[] {
  return types.map((ResourceType) => ({ ResourceType, Tags: tagListOf(metadata) }));
}

/** Root volume: the AMI's settings with the label's changes. Undefined when the AMI has no EBS root and the label changes nothing. */
function rootMapping(own: AwsLabelOwn, root: RootDevice) {
  if (root.ebs === null && !changesVolume(own)) return undefined;
  // Left out, so that the snapshot and the account's default decide about encryption, unless the label demands it.
  const { Encrypted: _, Iops, Throughput, ...ebs } = root.ebs ?? {};
  // EC2 refuses IOPS or throughput of another volume type.
  const sameType = own.volume.type === null || own.volume.type === root.ebs?.VolumeType;
  return {
    DeviceName: root.name,
    Ebs: {
      ...ebs,
      ...(sameType && {
        ...(Iops !== undefined && { Iops }),
        ...(Throughput !== undefined && { Throughput }),
      }),
      DeleteOnTermination: true,
      ...volumeOptions(own),
    },
  };
}

/** The label's settings of the root volume; keys that it does not set are missing. */
export function volumeOptions({ volume }: Pick<AwsLabelOwn, "volume">): EbsBlockDevice {
  const { type, size, iops, throughput, encrypted, kmsKey } = volume;
  return {
    ...(type !== null && { VolumeType: type as NonNullable<EbsBlockDevice["VolumeType"]> }),
    ...(size !== null && { VolumeSize: size }),
    ...(iops !== null && { Iops: iops }),
    ...(throughput !== null && { Throughput: throughput }),
    ...(encrypted && { Encrypted: true }),
    ...(encrypted && kmsKey !== null && { KmsKeyId: kmsKey }),
  };
}

function changesVolume(own: AwsLabelOwn): boolean {
  return Object.keys(volumeOptions(own)).length > 0;
}

/** Nodeyard's tags are applied last, so that user-defined tags cannot make a machine look like that of another node. */
export function tagsOf(order: CreateOrder, log: Pick<Log, "warn">): Metadata {
  const { own, name: label } = order.label as LabelConfig<AwsLabelOwn>;
  const omit = (tag: string, why: string) => log.warn({ label, tag, why }, "a tag is left out");
  return {
    ...own.tags,
    ...filledTemplates(own.dynamicTags, order.request, omit),
    ...machineMetadata(order.tag),
    Name: order.hostname,
  };
}
