import type { Instance } from "@aws-sdk/client-ec2";
import {
  abortable,
  type CloudPart,
  type FoundPart,
  type Resources,
  tagOf,
  unlessRefused,
} from "@nodeyard/driver";
import type { AwsAccount } from "./account.ts";
import { hostAmounts, listedAmounts, volumeAmounts } from "./quota/amounts.ts";
import { metadataOf } from "./tags.ts";

/** Quotas that count for a provider: those of its labels. Codes begin with "L-"; for others `quota` has no limit. */
const counted = (all: Resources, codes: ReadonlySet<string>) =>
  Object.fromEntries(Object.entries(all).filter(([name]) => !name.startsWith("L-") || codes.has(name)));

/**
 * What stands beside instances. The call that makes a resource also tags it, so nothing of ours is ever untagged. The lists are those of the
 * whole account; resources without an installation, such as Nodepool's, get no tag.
 */
export function besideInstances(
  { aws, hosts, release }: AwsAccount,
  codes: ReadonlySet<string>,
): Readonly<Record<string, CloudPart>> {
  return {
    host: {
      list: async (signal) =>
        [...(await hosts.whole(signal))].map(([id, { HostProperties, Tags }]) => {
          const { instances: _, ...code } = hostAmounts(HostProperties?.InstanceType ?? "");
          return { id, tag: tagOf(metadataOf(Tags)), resources: counted(code, codes) };
        }),
      delete: (id, signal) => unlessRefused(abortable(release(id), signal), /^InvalidHost(I[Dd])?\.NotFound/),
    },
    volume: {
      async list(signal) {
        // Those of other users use the same quota.
        const all = await aws.list("ec2.describeVolumes", "Volumes", {}, signal);
        return all.flatMap((volume): readonly FoundPart[] => {
          const { VolumeId: id, Attachments = [], State, Tags, VolumeType, Size, Iops } = volume;
          if (id === undefined || State === "deleted" || State === "deleting") return [];
          // A volume in another state is attached or being attached, so a deletion would fail, or hit a machine that has just come up.
          const isFree = State === "available" || State === "error";
          const tag = isFree ? tagOf(metadataOf(Tags)) : null;
          const on = Attachments.map(({ InstanceId }) => InstanceId);
          return [{ id, on, tag, resources: counted(volumeAmounts(VolumeType, Size, Iops), codes) }];
        });
      },
      delete: async (VolumeId, signal) => void (await aws.maybe("ec2.deleteVolume", { VolumeId }, signal)),
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
      delete: async (NetworkInterfaceId, signal) =>
        void (await aws.maybe("ec2.deleteNetworkInterface", { NetworkInterfaceId }, signal)),
    },
  };
}

/**
 * The use of the quota by an instance. Instance types of other users are looked up once each. When a type cannot be read, its
 * instance counts only as one instance.
 */
export async function amountsOf(
  { lookups }: AwsAccount,
  codes: ReadonlySet<string>,
  instances: readonly Instance[],
  signal: AbortSignal,
): Promise<(instance: Instance) => Resources> {
  const types = [...new Set(instances.map(({ InstanceType = "" }) => InstanceType))];
  const infos = types.map((type) => lookups.type(type, signal).catch(() => undefined));
  const found = await Promise.all(infos);
  return (instance) => {
    const info = found[types.indexOf(instance.InstanceType ?? "")];
    return counted(listedAmounts(instance, info), codes);
  };
}
