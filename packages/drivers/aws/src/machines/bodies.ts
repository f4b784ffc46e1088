import type { CreateFleetRequest, EbsBlockDevice, RunInstancesRequest } from "@aws-sdk/client-ec2";
import { type Metadata, present } from "@nodeyard/driver";
import type { AwsLabelOwn, AwsOrder, AwsPoolOwn } from "../config.ts";
import type { VolumeKeys } from "../config-table.ts";
import type { RootDevice } from "../lookups.ts";
import { tagSpecifications } from "../tags.ts";

/** Resolved settings of a launch. */
export interface Resolved {
  readonly imageId: string;
  readonly root: RootDevice;
  /** Null: EC2 chooses a subnet of the zone, or of any zone. */
  readonly subnet: string | null;
  /** The dedicated host; null for labels without one. */
  readonly host: string | null;
  /** Of the machine and what is made with it. */
  readonly tags: Metadata;
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
export function runBody(order: AwsOrder, resolved: Resolved, token: string): RunInstancesRequest {
  const { own } = order.label;
  const pool = order.pool.own;
  const { host, subnet, tags } = resolved;
  const device = rootMapping(own, resolved.root);
  const placement = present({
    AvailabilityZone: order.az,
    HostId: host,
    // Affinity "host": the instance belongs to this host, also after a stop.
    ...(host !== null && ({ Tenancy: "host", Affinity: "host" } as const)),
  });
  return {
    ...{ MinCount: 1, MaxCount: 1, ClientToken: token, ImageId: resolved.imageId },
    InstanceType: own.instanceType as RunInstancesRequest["InstanceType"],
    EbsOptimized: own.ebsOptimized,
    // What may be left over is tagged in the same call.
    TagSpecifications: tagSpecifications(["instance", "volume", "network-interface"], tags),
    NetworkInterfaces: [interfaceOf(pool, subnet)],
    ...(device !== undefined && { BlockDeviceMappings: [device] }),
    ...commonBody(own),
    ...(own.spot && { InstanceMarketOptions: SPOT }),
    ...(Object.keys(placement).length > 0 && { Placement: placement }),
  };
}

/** Body of CreateFleet: exactly one machine, at once or not at all ("instant"). `template`: name of the launch template. */
export function fleetBody(
  order: AwsOrder,
  { imageId, subnet, tags }: Resolved,
  template: string,
  token: string,
): CreateFleetRequest {
  const { own } = order.label;
  const market = own.spot ? "spot" : "on-demand";
  // On demand, EC2 knows only `lowest-price` and `prioritized`, and refuses the others.
  const strategy = { AllocationStrategy: own.fleet?.allocationStrategy as never };
  const place = present({ SubnetId: subnet, AvailabilityZone: subnet === null ? order.az : null });
  return {
    Type: "instant",
    ClientToken: token,
    ...(own.spot ? { SpotOptions: strategy } : { OnDemandOptions: strategy }),
    TargetCapacitySpecification: { TotalTargetCapacity: 1, DefaultTargetCapacityType: market },
    LaunchTemplateConfigs: [
      {
        LaunchTemplateSpecification: { LaunchTemplateName: template, Version: "$Latest" },
        // The strategy `prioritized` follows the order of the file.
        Overrides: (own.fleet?.instanceTypes ?? []).map((type, Priority) => ({
          ...{ ImageId: imageId, InstanceType: type as never, Priority, ...place },
        })),
      },
    ],
    TagSpecifications: tagSpecifications(["instance", "volume"], tags),
  };
}

/** With an interface in the request, EC2 refuses a subnet or groups beside it, so they are set here. */
export function interfaceOf({ publicIpv4, publicIpv6, securityGroup }: AwsPoolOwn, subnet: string | null) {
  return {
    ...{ DeviceIndex: 0, AssociatePublicIpAddress: publicIpv4 },
    ...(publicIpv6 && { Ipv6AddressCount: 1 }),
    ...(securityGroup !== null && { Groups: [securityGroup] }),
    ...present({ SubnetId: subnet }),
  };
}

/** A one-time spot request: EC2 terminates the instance when it interrupts it and makes no new one. */
const SPOT = {
  MarketType: "spot",
  SpotOptions: { SpotInstanceType: "one-time", InstanceInterruptionBehavior: "terminate" },
} as const;

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

/** Root volume: the AMI's settings with the label's changes. Undefined when the AMI has no EBS root and the label changes nothing. */
function rootMapping(own: AwsLabelOwn, root: RootDevice) {
  const changes = volumeOptions(own);
  if (root.ebs === null && Object.keys(changes).length === 0) return undefined;
  // Left out, so that the snapshot and the account's default decide about encryption, unless the label demands it.
  const { Encrypted: _, Iops, Throughput, ...ebs } = root.ebs ?? {};
  // EC2 refuses IOPS or throughput of another volume type.
  const sameType = own.volumeType === null || own.volumeType === root.ebs?.VolumeType;
  const speed = sameType ? present({ Iops, Throughput }) : {};
  return { DeviceName: root.name, Ebs: { ...ebs, ...speed, DeleteOnTermination: true, ...changes } };
}

/** The settings of a root volume; keys that are not set are missing. */
export function volumeOptions(own: VolumeKeys & Partial<AwsLabelOwn>): EbsBlockDevice {
  return present({
    VolumeType: own.volumeType as EbsBlockDevice["VolumeType"] | null,
    ...{ VolumeSize: own.volumeSize, Iops: own.iops, Throughput: own.throughput },
    ...(own.volumeEncrypted && { Encrypted: true, KmsKeyId: own.volumeKmsKey }),
  });
}
