import type { Tag as AwsTag, Filter } from "@aws-sdk/client-ec2";
import { type ImageTag, imageTagOf, type Metadata, sameImage } from "@nodeyard/driver";
import type { Aws } from "../client/index.ts";
import { metadataOf } from "../tags.ts";

/** An AMI, a snapshot, or a task that imports one of them from a file in a bucket. */
export interface Item {
  readonly id: string;
  readonly state: string;
  /** Why it is in that state, or what it is doing. */
  readonly message: string;
  readonly metadata: Metadata;
  /** The upload that it is of; null: none of Nodeyard's. */
  readonly tag: ImageTag | null;
  /** Snapshots of an AMI; the AMI and the snapshots that a task has made so far, the AMI first. */
  readonly parts: readonly string[];
}

export const isImage = (id: string) => id.startsWith("ami-");
export const isSnapshot = (id: string) => id.startsWith("snap-");

type List = (aws: Aws, filters: Filter[], signal: AbortSignal) => Promise<readonly Item[]>;

/** AMIs of this account in one region. */
export const listImages: List = async (aws, Filters, signal) => {
  const all = await aws.list("ec2.describeImages", "Images", { Owners: ["self"], Filters }, signal);
  return all.map(({ ImageId, Tags, State, StateReason, BlockDeviceMappings = [] }) => {
    const snapshots = BlockDeviceMappings.map(({ Ebs }) => Ebs?.SnapshotId);
    return itemOf(ImageId, Tags, State, StateReason?.Message, snapshots);
  });
};

/** The same of snapshots. */
export const listSnapshots: List = async (aws, Filters, signal) => {
  const all = await aws.list("ec2.describeSnapshots", "Snapshots", { OwnerIds: ["self"], Filters }, signal);
  return all.map(({ SnapshotId, Tags, State, StateMessage }) =>
    itemOf(SnapshotId, Tags, State, StateMessage),
  );
};

/** Import tasks of this account in one region, or one of them. The API cannot filter by tags. */
export async function importTasks(
  aws: Aws,
  kind: "snapshot" | "image",
  signal: AbortSignal,
  id?: string,
): Promise<readonly Item[]> {
  const which = id === undefined ? {} : { ImportTaskIds: [id] };
  if (kind === "image") {
    const all = await aws.list("ec2.describeImportImageTasks", "ImportImageTasks", which, signal);
    return all.map(({ ImportTaskId, Tags, Status, StatusMessage, ImageId, SnapshotDetails = [] }) => {
      const made = [ImageId, ...SnapshotDetails.map(({ SnapshotId }) => SnapshotId)];
      return itemOf(ImportTaskId, Tags, Status, StatusMessage, made);
    });
  }
  const all = await aws.list("ec2.describeImportSnapshotTasks", "ImportSnapshotTasks", which, signal);
  return all.map(({ ImportTaskId, Tags, SnapshotTaskDetail: detail = {} }) =>
    itemOf(ImportTaskId, Tags, detail.Status, detail.StatusMessage, [detail.SnapshotId]),
  );
}

/** AMIs and snapshots with these ids. Ids are filters: a request by ids fails when one of them does not exist. */
export async function itemsWith(
  aws: Aws,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<readonly Item[]> {
  const listed = (list: List, Name: string, Values: string[]) =>
    Values.length > 0 ? list(aws, [{ Name, Values }], signal) : [];
  const images = await listed(listImages, "image-id", ids.filter(isImage));
  return [...images, ...(await listed(listSnapshots, "snapshot-id", ids.filter(isSnapshot)))];
}

/** What `list` finds of an upload. */
export async function ofUpload(
  aws: Aws,
  list: List,
  of: ImageTag,
  signal: AbortSignal,
): Promise<readonly Item[]> {
  const found = await list(aws, [{ Name: "tag:nodepool_upload_id", Values: [of.uploadId] }], signal);
  // Another installation may have an upload of this number.
  return found.filter(({ tag }) => tag !== null && sameImage(tag, of));
}

/** An item as far as it is known: one that was just begun has nothing but its id. */
export function itemOf(
  id = "",
  tags?: AwsTag[],
  state = "pending",
  message = "no reason given",
  parts: readonly (string | undefined)[] = [],
): Item {
  const metadata = metadataOf(tags);
  const tag = imageTagOf(metadata);
  return { id, state, message, metadata, tag, parts: parts.flatMap((part) => part ?? []) };
}
