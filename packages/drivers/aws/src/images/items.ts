import type { Tag as AwsTag, Filter } from "@aws-sdk/client-ec2";
import { type FoundPart, imageTagOf, type Metadata } from "@nodeyard/driver";
import type { Site } from "../account.ts";
import type { Aws } from "../client/aws.ts";
import { metadataOf, tagListOf } from "../tags.ts";

/** An AMI, a snapshot, or a task that imports one of them from a file in a bucket. */
export interface Item {
  readonly id: string;
  readonly state: string;
  /** Why it is in that state, or what it is doing. */
  readonly message: string;
  readonly metadata: Metadata;
  /** Snapshots of an AMI; the AMI and the snapshots that a task has made so far, the AMI first. */
  readonly parts: readonly string[];
}

export const isImage = (id: string) => id.startsWith("ami-");
export const isSnapshot = (id: string) => id.startsWith("snap-");

/** An item as far as it is known: one that was just begun has nothing but its id. */
export function itemOf(
  id = "",
  tags?: AwsTag[],
  state = "pending",
  message = "no reason given",
  parts: readonly (string | undefined)[] = [],
): Item {
  return { id, state, message, metadata: metadataOf(tags), parts: parts.flatMap((part) => part ?? []) };
}

/** AMIs, snapshots and import tasks of this account in one region. */
export function itemsIn(aws: Aws) {
  const images = async (Filters: Filter[], signal: AbortSignal): Promise<readonly Item[]> => {
    const all = await aws.list("ec2.describeImages", "Images", { Owners: ["self"], Filters }, signal);
    return all.map(({ ImageId, Tags, State, StateReason, BlockDeviceMappings = [] }) => {
      const made = BlockDeviceMappings.map(({ Ebs }) => Ebs?.SnapshotId);
      return itemOf(ImageId, Tags, State, StateReason?.Message, made);
    });
  };
  const snapshots: typeof images = async (Filters, signal) => {
    const request = { OwnerIds: ["self"], Filters };
    const all = await aws.list("ec2.describeSnapshots", "Snapshots", request, signal);
    return all.map((one) => itemOf(one.SnapshotId, one.Tags, one.State, one.StateMessage));
  };
  return {
    images,
    snapshots,
    /** AMIs and snapshots with these ids. Ids are filters: a request by ids fails when one of them does not exist. */
    async withIds(ids: readonly string[], signal: AbortSignal): Promise<readonly Item[]> {
      const listed = (list: typeof images, Name: string, Values: string[]) =>
        Values.length > 0 ? list([{ Name, Values }], signal) : [];
      const found = await listed(images, "image-id", ids.filter(isImage));
      return [...found, ...(await listed(snapshots, "snapshot-id", ids.filter(isSnapshot)))];
    },
    /** All tasks of a kind, or one of them. The API cannot filter by tags. */
    async tasks(kind: "snapshot" | "image", signal: AbortSignal, id?: string): Promise<readonly Item[]> {
      const which = id === undefined ? {} : { ImportTaskIds: [id] };
      if (kind === "image") {
        const all = await aws.list("ec2.describeImportImageTasks", "ImportImageTasks", which, signal);
        return all.map(({ ImportTaskId, Tags, Status, StatusMessage, ImageId, SnapshotDetails = [] }) => {
          const made = [ImageId, ...SnapshotDetails.map(({ SnapshotId }) => SnapshotId)];
          return itemOf(ImportTaskId, Tags, Status, StatusMessage, made);
        });
      }
      const all = await aws.list("ec2.describeImportSnapshotTasks", "ImportSnapshotTasks", which, signal);
      return all.map(({ ImportTaskId, Tags, SnapshotTaskDetail: task = {} }) =>
        itemOf(ImportTaskId, Tags, task.Status, task.StatusMessage, [task.SnapshotId]),
      );
    },
  };
}

/** Deletes an AMI with its snapshots, or a snapshot; a region may come before its id. EC2 refuses while an AMI uses it (InvalidSnapshot.InUse). */
export async function removeUploaded(home: Aws, at: string, signal: AbortSignal): Promise<void> {
  const [id = "", region] = at.split("/").reverse();
  const aws = region === undefined ? home : home.in(region);
  let snapshots: readonly string[] = [id];
  if (isImage(id)) {
    // Read before the deletion, after which EC2 no longer says which snapshots it had.
    snapshots = (await itemsIn(aws).withIds([id], signal)).flatMap((image) => image.parts);
    await aws.maybe("ec2.deregisterImage", { ImageId: id }, signal);
  }
  for (const SnapshotId of snapshots) await aws.maybe("ec2.deleteSnapshot", { SnapshotId }, signal);
}

/**
 * AMIs and snapshots that uploads of a provider made, in its region and in the regions it copies to. Ids are unique in a region only, so the
 * name of another one comes before the id. A snapshot is removed with the AMI that boots from it, so it is listed only when there is no such AMI.
 */
export async function listUploads(site: Site, signal: AbortSignal): Promise<readonly FoundPart[]> {
  const { aws, config } = site;
  const { diskimages, bucket } = config.own;
  const filters = [{ Name: "tag:nodepool_provider_name", Values: [config.name] }];
  const home = await aws.region(signal);
  const copies = [...diskimages.values()].flatMap(({ copyTo }) => copyTo);
  const all: FoundPart[] = [];
  if (bucket !== null) await adopt(site, signal);
  for (const region of new Set([home, ...copies])) {
    const [items, place] = region === home ? [itemsIn(aws), ""] : [itemsIn(aws.in(region)), `${region}/`];
    // AMIs are listed last: the snapshot of an AMI that is made meanwhile is then known to be in use.
    const snapshots = await items.snapshots(filters, signal);
    const images = await items.images(filters, signal);
    const used = images.flatMap((image) => image.parts);
    for (const { id, metadata } of [...images, ...snapshots]) {
      const [type, imageTag] = [isImage(id) ? "image" : "snapshot", imageTagOf(metadata)];
      if (imageTag !== null && !used.includes(id)) all.push({ type, id: place + id, imageTag });
    }
  }
  return all;
}

/** Import tasks of both kinds that are of the provider's uploads. */
export async function ownTasks(site: Site, signal: AbortSignal): Promise<readonly Item[]> {
  const { aws, installation, config } = site;
  const kinds = ["snapshot", "image"] as const;
  const all = await Promise.all(kinds.map((kind) => itemsIn(aws).tasks(kind, signal)));
  return all.flat().filter(({ metadata }) => {
    const tag = imageTagOf(metadata);
    return tag?.installation === installation && tag.provider === config.name;
  });
}

/** Tags what imports made whose launcher ended before they did, as their tasks are. What no tagged task names belongs to others of the account. */
async function adopt(site: Site, signal: AbortSignal): Promise<void> {
  const tasks = await ownTasks(site, signal);
  const tagsOf = new Map(tasks.flatMap((task) => task.parts.map((id) => [id, task.metadata] as const)));
  for (const { id, metadata } of await itemsIn(site.aws).withIds([...tagsOf.keys()], signal)) {
    const request = { Resources: [id], Tags: tagListOf(tagsOf.get(id)!) };
    if (Object.keys(metadata).length === 0) await site.aws.call("ec2.createTags", request, signal);
  }
}
