import type { Instance, Volume } from "@aws-sdk/client-ec2";
import { abortable, type Resource, type Resources, tagOf } from "@nodeyard/driver";
import type { AwsAccount } from "./account.ts";
import { type Aws, allPages, codeOf } from "./client/index.ts";
import { isReleased } from "./machines/hosts.ts";
import { hasEnded } from "./machines/instances.ts";
import { attached, hostAmounts, listedAmounts } from "./quota/amounts.ts";
import { metadataOf } from "./tags.ts";

/** The provider's part of the judgement. The lists are those of the whole account. */
export interface LeakRules {
  /** Quota codes that count for the provider's labels. */
  readonly codes: ReadonlySet<string>;
  /** Whether EC2 has announced the interruption of a spot instance. */
  readonly interrupted: (instance: Instance) => boolean;
}

/**
 * Resources of machines with the tag of their node. The call that makes a resource also tags it, so no resource of ours is ever untagged. A
 * resource that belongs to a listed instance is left out, because it is counted and removed with the instance. Resources without an
 * installation, such as Nodepool's, get no tag, so they are never deleted.
 */
export async function machineResources(
  account: AwsAccount,
  { codes, interrupted }: LeakRules,
  signal: AbortSignal,
): Promise<readonly Resource[]> {
  account.hosts.invalidate();
  account.volumes.invalidate();
  // Instances are listed last, so that the resources of one that is made meanwhile find their instance.
  const [hosts, volumes, interfaces] = await Promise.all([
    account.hosts.get(signal),
    account.volumes.get(signal),
    idleInterfaces(account.aws, signal),
  ]);
  const instances = [...(await account.instances.whole(signal)).values()];
  const amounts = await amountsOf(account, instances, volumes, signal);
  const ids = new Set(instances.map(({ InstanceId }) => InstanceId));
  // Quota codes begin with "L-". Codes that no label can use are left out, as `quota` has no limit for them.
  const counted = (all: Resources) =>
    Object.fromEntries(Object.entries(all).filter(([name]) => !name.startsWith("L-") || codes.has(name)));
  // A host with an instance counts with it. Listing it as well would report one node as two leaks.
  const used = new Set(instances.map(({ Placement }) => Placement?.HostId));
  return [
    ...instances.map((instance) => {
      const { InstanceId = "", Placement, Tags } = instance;
      // An interrupted machine still runs for two minutes, but no job may get it.
      const ended = hasEnded(instance) || interrupted(instance);
      return {
        type: "instance",
        id: { ...(Placement?.HostId !== undefined && { host: Placement.HostId }), instance: InstanceId },
        tag: tagOf(metadataOf(Tags)),
        ...(ended && { ended }),
        resources: counted(amounts(instance)),
      };
    }),
    ...hosts.flatMap((host): Resource[] => {
      const { HostId, HostProperties, Tags } = host;
      if (isReleased(host) || HostId === undefined || used.has(HostId)) return [];
      const { instances: _, ...code } = hostAmounts(HostProperties?.InstanceType ?? "");
      return [{ type: "host", id: HostId, tag: tagOf(metadataOf(Tags)), resources: code }];
    }),
    ...volumes.flatMap((volume): Resource[] => {
      const { VolumeId, Attachments, State, Tags } = volume;
      if (VolumeId === undefined || State === "deleted" || State === "deleting") return [];
      if (Attachments?.some(({ InstanceId }) => ids.has(InstanceId))) return [];
      // A volume in another state is attached or being attached, so a deletion would fail, or hit a machine that has just come up.
      const isFree = State === "available" || State === "error";
      const tag = isFree ? tagOf(metadataOf(Tags)) : null;
      return [{ type: "volume", id: VolumeId, tag, resources: counted(attached(volume)) }];
    }),
    ...interfaces.map(({ NetworkInterfaceId = "", TagSet }) => {
      // Interfaces use no quota that is counted here.
      return { type: "interface", id: NetworkInterfaceId, tag: tagOf(metadataOf(TagSet)), resources: {} };
    }),
  ];
}

/** Deletes one of these resources. A missing resource is no error. */
export async function removeMachineResource(
  account: AwsAccount,
  { type, id }: Resource,
  signal: AbortSignal,
): Promise<void> {
  const { aws } = account;
  const name = typeof id === "string" ? id : String(id.instance ?? "");
  try {
    if (type === "instance") await abortable(account.terminations.add(name), signal);
    if (type === "host") await abortable(account.releases.add(name), signal);
    if (type === "volume") await aws.ec2((ec2, to) => ec2.deleteVolume({ VolumeId: name }, to), signal);
    if (type === "interface")
      await aws.ec2((ec2, to) => ec2.deleteNetworkInterface({ NetworkInterfaceId: name }, to), signal);
  } catch (error) {
    if (!/^Invalid(InstanceID|HostI[Dd]|Volume|NetworkInterfaceID)\./.test(codeOf(error))) throw error;
  }
}

/** Tagged network interfaces without a machine. EC2 deletes them with their machine unless that fails. */
function idleInterfaces(aws: Aws, signal: AbortSignal) {
  const Filters = [
    { Name: "status", Values: ["available"] },
    { Name: "tag-key", Values: ["nodeyard_installation"] },
  ];
  return allPages(
    (token) => aws.ec2((ec2, to) => ec2.describeNetworkInterfaces({ Filters, ...token }, to), signal),
    ({ NetworkInterfaces }) => NetworkInterfaces,
  );
}

/**
 * The use of the quota by an instance. Instance types of other users are looked up once each. When a type cannot be read, its
 * instance counts only as one instance.
 */
async function amountsOf(
  { lookups }: AwsAccount,
  instances: readonly Instance[],
  volumes: readonly Volume[],
  signal: AbortSignal,
): Promise<(instance: Instance) => Resources> {
  const types = [...new Set(instances.map(({ InstanceType }) => InstanceType ?? ""))];
  const infos = await Promise.all(
    types.map(async (type) => [type, await lookups.type(type, signal).catch(() => undefined)] as const),
  );
  const byType = new Map(infos);
  const byId = new Map(volumes.map((volume) => [volume.VolumeId ?? "", volume]));
  return (instance) => listedAmounts(instance, byType.get(instance.InstanceType ?? ""), byId);
}
