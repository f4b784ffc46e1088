import type { Instance } from "@aws-sdk/client-ec2";
import { abortable, type CloudPart, type FoundPart, type Resources, tagOf } from "@nodeyard/driver";
import type { AwsAccount } from "./account.ts";
import { type Aws, allPages, codeOf } from "./client/index.ts";
import { isReleased } from "./machines/hosts.ts";
import { attached, hostAmounts, listedAmounts } from "./quota/amounts.ts";
import { metadataOf } from "./tags.ts";

/** Quotas that count for a provider: those of its labels. Codes begin with "L-"; for others `quota` has no limit. */
const counted = (all: Resources, codes: ReadonlySet<string>) =>
  Object.fromEntries(Object.entries(all).filter(([name]) => !name.startsWith("L-") || codes.has(name)));

/**
 * What stands beside instances. The call that makes a resource also tags it, so nothing of ours is ever untagged. The lists are those of the
 * whole account; resources without an installation, such as Nodepool's, get no tag.
 */
export function besideInstances(
  account: AwsAccount,
  codes: ReadonlySet<string>,
): Readonly<Record<string, CloudPart>> {
  const { aws, hosts, volumes } = account;
  return {
    host: {
      async list(signal) {
        hosts.invalidate();
        return (await hosts.get(signal)).flatMap((host): readonly FoundPart[] => {
          const { HostId: id, HostProperties, Tags } = host;
          if (isReleased(host) || id === undefined) return [];
          const { instances: _, ...code } = hostAmounts(HostProperties?.InstanceType ?? "");
          return [{ id, tag: tagOf(metadataOf(Tags)), resources: counted(code, codes) }];
        });
      },
      delete: (id, signal) => abortable(account.releases.add(id), signal).catch(unlessGone),
    },
    volume: {
      async list(signal) {
        volumes.invalidate();
        return (await volumes.get(signal)).flatMap((volume): readonly FoundPart[] => {
          const { VolumeId: id, Attachments = [], State, Tags } = volume;
          if (id === undefined || State === "deleted" || State === "deleting") return [];
          // A volume in another state is attached or being attached, so a deletion would fail, or hit a machine that has just come up.
          const isFree = State === "available" || State === "error";
          const tag = isFree ? tagOf(metadataOf(Tags)) : null;
          const on = Attachments.map(({ InstanceId }) => InstanceId);
          return [{ id, on, tag, resources: counted(attached(volume), codes) }];
        });
      },
      delete: async (VolumeId, signal) =>
        void (await aws.ec2((ec2, to) => ec2.deleteVolume({ VolumeId }, to), signal).catch(unlessGone)),
    },
    interface: {
      // Interfaces use no quota that is counted here.
      list: async (signal) =>
        (await idleInterfaces(aws, signal)).map(({ NetworkInterfaceId: id = "", TagSet }) => ({
          ...{ id, tag: tagOf(metadataOf(TagSet)) },
        })),
      delete: async (NetworkInterfaceId, signal) =>
        void (await aws
          .ec2((ec2, to) => ec2.deleteNetworkInterface({ NetworkInterfaceId }, to), signal)
          .catch(unlessGone)),
    },
  };
}

function unlessGone(error: unknown): void {
  if (!/^Invalid(HostI[Dd]|Volume|NetworkInterfaceID)\./.test(codeOf(error))) throw error;
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
export async function amountsOf(
  { lookups }: AwsAccount,
  codes: ReadonlySet<string>,
  instances: readonly Instance[],
  signal: AbortSignal,
): Promise<(instance: Instance) => Resources> {
  const types = [...new Set(instances.map(({ InstanceType }) => InstanceType ?? ""))];
  const infos = await Promise.all(
    types.map(async (type) => [type, await lookups.type(type, signal).catch(() => undefined)] as const),
  );
  const byType = new Map(infos);
  return (instance) => counted(listedAmounts(instance, byType.get(instance.InstanceType ?? "")), codes);
}
