import type { Image, ImportImageTask, ImportSnapshotTask, Snapshot } from "@aws-sdk/client-ec2";
import { type ImageTag, imageTagOf, sameImage } from "@nodeyard/driver";
import { type Aws, allPages } from "../client/index.ts";
import { metadataOf } from "../tags.ts";
import { filtersOf } from "./tags.ts";

/** AMIs of this account in one region that have the tag. */
export async function imagesOf(aws: Aws, tag: ImageTag, signal: AbortSignal): Promise<readonly Image[]> {
  const found = await listImages(aws, { Filters: filtersOf(tag) }, signal);
  return found.filter((image) => carries(image, tag));
}

/** Snapshots of this account in one region that have the tag. */
export async function snapshotsOf(
  aws: Aws,
  tag: ImageTag,
  signal: AbortSignal,
): Promise<readonly Snapshot[]> {
  const found = await listSnapshots(aws, { Filters: filtersOf(tag) }, signal);
  return found.filter((snapshot) => carries(snapshot, tag));
}

/** AMIs of this account; `what`: further parameters of DescribeImages. */
export function listImages(aws: Aws, what: object, signal: AbortSignal): Promise<readonly Image[]> {
  return allPages(
    (token) => aws.ec2((ec2, to) => ec2.describeImages({ Owners: ["self"], ...what, ...token }, to), signal),
    ({ Images }) => Images,
  );
}

/** Snapshots of this account; `what`: further parameters of DescribeSnapshots. */
export function listSnapshots(aws: Aws, what: object, signal: AbortSignal): Promise<readonly Snapshot[]> {
  return allPages(
    (token) =>
      aws.ec2((ec2, to) => ec2.describeSnapshots({ OwnerIds: ["self"], ...what, ...token }, to), signal),
    ({ Snapshots }) => Snapshots,
  );
}

/** An import task, which makes a snapshot or an AMI from a file in a bucket. */
export interface ImportTask {
  readonly id: string;
  /** Null: the task is not ours. */
  readonly tag: ImageTag | null;
  /** Tags of the task itself. EC2 does not copy them to the result. */
  readonly tags: NonNullable<ImportSnapshotTask["Tags"]>;
  /** "active" or "completed"; every other status means failed or failing. */
  readonly status: string;
  /** Why it failed, or what it is doing; empty when EC2 says nothing. */
  readonly message: string;
  /** The AMI that it made; null for imports of snapshots, and until it is there. */
  readonly image: string | null;
  /** The snapshots that it made so far. */
  readonly snapshots: readonly string[];
}

/** All import tasks of this account in one region, or those with these ids. The API cannot filter by tags. */
export async function importTasks(
  aws: Aws,
  kind: "snapshot" | "image",
  ids: readonly string[] | null,
  signal: AbortSignal,
): Promise<readonly ImportTask[]> {
  const which = ids === null ? {} : { ImportTaskIds: [...ids] };
  if (kind === "snapshot")
    return allPages(
      (token) => aws.ec2((ec2, to) => ec2.describeImportSnapshotTasks({ ...which, ...token }, to), signal),
      ({ ImportSnapshotTasks }) => ImportSnapshotTasks?.map(snapshotTask),
    );
  return allPages(
    (token) => aws.ec2((ec2, to) => ec2.describeImportImageTasks({ ...which, ...token }, to), signal),
    ({ ImportImageTasks }) => ImportImageTasks?.map(imageTask),
  );
}

function snapshotTask({ ImportTaskId, SnapshotTaskDetail, Tags }: ImportSnapshotTask): ImportTask {
  const { Status, StatusMessage, SnapshotId } = SnapshotTaskDetail ?? {};
  return taskOf({ ImportTaskId, Tags, Status, StatusMessage }, SnapshotId === undefined ? [] : [SnapshotId]);
}

function imageTask(task: ImportImageTask): ImportTask {
  const snapshots = (task.SnapshotDetails ?? []).flatMap(({ SnapshotId }) => SnapshotId ?? []);
  return { ...taskOf(task, snapshots), image: task.ImageId ?? null };
}

/** Imports of both kinds. */
export async function allImportTasks(aws: Aws, signal: AbortSignal): Promise<readonly ImportTask[]> {
  const kinds = ["snapshot", "image"] as const;
  return (await Promise.all(kinds.map((kind) => importTasks(aws, kind, null, signal)))).flat();
}

/** A task as the API describes it: one that was just begun has nothing but its id. */
export function taskOf(
  task: Pick<ImportImageTask, "ImportTaskId" | "Tags" | "Status" | "StatusMessage">,
  snapshots: readonly string[] = [],
): ImportTask {
  return {
    id: task.ImportTaskId ?? "",
    tag: imageTagOf(metadataOf(task.Tags)),
    tags: task.Tags ?? [],
    status: task.Status ?? "unknown",
    message: task.StatusMessage ?? "",
    image: null,
    snapshots,
  };
}

/** Snapshots in the block device mappings of an AMI. */
export function snapshotsIn({ BlockDeviceMappings }: Image): readonly string[] {
  return (BlockDeviceMappings ?? []).flatMap(({ Ebs }) => Ebs?.SnapshotId ?? []);
}

/** Whether the tags name this upload: the filters compare two parts of the tag only. */
function carries({ Tags }: Pick<Image, "Tags">, tag: ImageTag): boolean {
  const own = imageTagOf(metadataOf(Tags));
  return own !== null && sameImage(own, tag);
}
