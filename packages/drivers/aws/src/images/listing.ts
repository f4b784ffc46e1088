import { type FoundPart, sameImage } from "@nodeyard/driver";
import type { Aws } from "../client/index.ts";
import { tagListOf } from "../tags.ts";
import { importTasks, isImage, itemsWith, listImages, listSnapshots } from "./items.ts";
import type { ImageParts } from "./upload.ts";

/**
 * Deletes an AMI with its snapshots, or a snapshot. A name of another region comes before the id. EC2 refuses while an AMI uses a snapshot
 * (InvalidSnapshot.InUse, "transient").
 */
export async function removeUploaded(parts: ImageParts, at: string, signal: AbortSignal): Promise<void> {
  const [id = "", region] = at.split("/").reverse();
  const aws = region === undefined ? parts.aws : parts.aws.in(region);
  let snapshots: readonly string[] = [id];
  if (isImage(id)) {
    // Read before the deletion, after which EC2 no longer says which snapshots it had.
    snapshots = (await itemsWith(aws, [id], signal)).flatMap((image) => image.parts);
    await aws.maybe("ec2.deregisterImage", { ImageId: id }, signal);
  }
  for (const SnapshotId of snapshots) await aws.maybe("ec2.deleteSnapshot", { SnapshotId }, signal);
}

/**
 * AMIs and snapshots that uploads of a provider made, in its region and in the regions it copies to. A snapshot is removed with the AMI that
 * boots from it, so it is listed only when there is no such AMI.
 */
export async function listUploads(parts: ImageParts, signal: AbortSignal): Promise<readonly FoundPart[]> {
  const { settings, owner } = parts;
  const filters = [{ Name: "tag:nodepool_provider_name", Values: [owner.provider] }];
  const all: FoundPart[] = [];
  if (settings.bucket !== null) await adopt(parts, signal);
  for (const [place, at] of await places(parts, signal)) {
    // AMIs are listed last: the snapshot of an AMI that is made meanwhile is then known to be in use.
    const snapshots = await listSnapshots(at, filters, signal);
    const images = await listImages(at, filters, signal);
    const used = images.flatMap((image) => image.parts);
    for (const { id, tag: imageTag } of [...images, ...snapshots]) {
      const type = isImage(id) ? "image" : "snapshot";
      if (imageTag !== null && !used.includes(id)) all.push({ type, id: place + id, tag: null, imageTag });
    }
  }
  return all;
}

/**
 * The provider's region and the regions that its images are copied to. Ids are unique in a region only, so the name of another one
 * comes before the id.
 */
async function places({ aws, settings }: ImageParts, signal: AbortSignal): Promise<ReadonlyMap<string, Aws>> {
  const region = await aws.region(signal);
  const copies = [...settings.diskimages.values()].flatMap(({ copyTo }) => copyTo);
  const others = copies.filter((name) => name !== region);
  return new Map([["", aws], ...others.map((name) => [`${name}/`, aws.in(name)] as const)]);
}

/** Import tasks of both kinds that are of the provider's uploads. */
export async function ownTasks({ aws, owner }: ImageParts, signal: AbortSignal) {
  const kinds = ["snapshot", "image"] as const;
  const all = await Promise.all(kinds.map((kind) => importTasks(aws, kind, signal)));
  return all.flat().filter(({ tag }) => tag !== null && sameImage(tag, { ...tag, ...owner }));
}

/**
 * Tags the results of imports that have no tags because the launcher that waited for them ended. They get the tags of the task
 * that made them. Resources that no tagged task names are left alone: they belong to other users of the account.
 */
async function adopt(parts: ImageParts, signal: AbortSignal): Promise<void> {
  const tasks = await ownTasks(parts, signal);
  const tagsOf = new Map(tasks.flatMap((task) => task.parts.map((id) => [id, task.metadata] as const)));
  for (const { id, metadata } of await itemsWith(parts.aws, [...tagsOf.keys()], signal)) {
    const request = { Resources: [id], Tags: tagListOf(tagsOf.get(id)!) };
    if (Object.keys(metadata).length === 0) await parts.aws.call("ec2.createTags", request, signal);
  }
}
