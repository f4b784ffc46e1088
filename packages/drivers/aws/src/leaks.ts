import { type CloudPart, type FoundPart, tagOf } from "@nodeyard/driver";
import type { Aws } from "./client/aws.ts";
import { volumeAmounts } from "./quota.ts";
import { metadataOf } from "./tags.ts";

/**
 * What stands beside instances, but for hosts. The call that makes a resource also tags it, so nothing of ours is ever untagged. The lists are
 * those of the whole account; resources without an installation, such as Nodepool's, get no tag. `codes`: quotas that the labels count against.
 */
export function besideInstances(aws: Aws, codes: ReadonlySet<string>): Readonly<Record<string, CloudPart>> {
  return {
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
          const used = Object.entries(volumeAmounts(VolumeType, Size, Iops));
          return [{ id, on, tag, resources: Object.fromEntries(used.filter(([code]) => codes.has(code))) }];
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
