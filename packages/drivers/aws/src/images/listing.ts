import type { Image } from "@aws-sdk/client-ec2";
import { type CloudPart, type FoundPart, imageTagOf } from "@nodeyard/driver";
import { metadataOf } from "../tags.ts";
import { listObjects, removeObjects } from "./bucket.ts";
import { allImportTasks } from "./import.ts";
import { type ImageParts, listImages, listSnapshots, places } from "./parts.ts";
import { keysOf, tagOfKey } from "./tags.ts";

/** Whose uploads are listed. */
interface Owner {
  readonly installation: string;
  readonly provider: string;
}

/**
 * All resources that uploads of a provider made, in its region and in the regions it copies to. A snapshot is removed with the AMI that
 * boots from it, so it is listed only when there is no such AMI.
 */
export async function listUploads(
  parts: ImageParts,
  owner: Owner,
  signal: AbortSignal,
): Promise<readonly FoundPart[]> {
  const { aws, settings } = parts;
  const filters = [{ Name: "tag:nodepool_provider_name", Values: [owner.provider] }];
  const all: FoundPart[] = [];
  if (settings.bucket !== null) await adopt(parts, owner, signal);
  for (const [region, at] of await places(parts, signal)) {
    // Ids are unique in a region only. The name of another region is put before the id, for the deletion.
    const place = at === aws ? "" : `${region}/`;
    const add = (type: string, id: string | undefined, { Tags }: Pick<Image, "Tags">) => {
      const imageTag = imageTagOf(metadataOf(Tags));
      if (imageTag !== null) all.push({ type, id: `${place}${id}`, tag: null, imageTag });
    };
    // AMIs are listed last: the snapshot of an AMI that is made meanwhile is then known to be in use.
    const snapshots = await listSnapshots(at, filters, signal);
    const images = await listImages(at, filters, signal);
    const used = images.flatMap(snapshotsIn);
    for (const image of images) add("image", image.ImageId, image);
    for (const snapshot of snapshots)
      if (!used.includes(snapshot.SnapshotId!)) add("snapshot", snapshot.SnapshotId, snapshot);
  }
  if (settings.bucket === null) return all;
  const prefix = keysOf(owner.installation, owner.provider);
  return [...all, ...(await listObjects(aws, settings.bucket, prefix, signal))];
}

/** The three kinds of these resources. They are listed together, as which of them are left over shows only then. */
export function uploadedParts(parts: ImageParts, owner: Owner): Readonly<Record<string, CloudPart>> {
  const at = (id: string) => {
    const [name = "", region] = id.split("/").reverse();
    return { name, aws: region === undefined ? parts.aws : parts.aws.in(region) };
  };
  // EC2 refuses while an AMI uses it (InvalidSnapshot.InUse, "transient").
  const deleteSnapshot: CloudPart["delete"] = async (id, signal) => {
    const { aws, name } = at(id);
    await aws.maybe("ec2.deleteSnapshot", { SnapshotId: name }, signal);
  };
  return {
    image: {
      list: (signal) => listUploads(parts, owner, signal),
      async delete(id, signal) {
        const { aws, name } = at(id);
        // Read before the deletion, after which EC2 no longer says which snapshots it had.
        const [image] = await listImages(aws, [{ Name: "image-id", Values: [name] }], signal);
        await aws.maybe("ec2.deregisterImage", { ImageId: name }, signal);
        for (const snapshot of image === undefined ? [] : snapshotsIn(image))
          await deleteSnapshot(id.replace(name, snapshot), signal);
      },
    },
    snapshot: { delete: deleteSnapshot },
    object: {
      async delete(id, signal) {
        const tag = tagOfKey(id);
        const { bucket } = parts.settings;
        if (tag !== null && bucket !== null) await removeObjects(parts.aws, bucket, tag, signal);
      },
    },
  };
}

/**
 * Tags the results of imports that have no tags because the launcher that waited for them ended. They get the tags of the task
 * that made them. Resources that no tagged task names are left alone: they belong to other users of the account.
 */
async function adopt({ aws }: ImageParts, owner: Owner, signal: AbortSignal): Promise<void> {
  const own = (await allImportTasks(aws, signal)).filter(
    ({ tag }) => tag?.installation === owner.installation && tag.provider === owner.provider,
  );
  const tagsBy = new Map(own.flatMap(({ made, tags }) => made.map((id) => [id, tags] as const)));
  const named = (prefix: string) => [...tagsBy.keys()].filter((id) => id.startsWith(prefix));
  const [images, snapshots] = [named("ami-"), named("snap-")];
  const found = await Promise.all([
    images.length > 0 ? listImages(aws, [{ Name: "image-id", Values: images }], signal) : [],
    snapshots.length > 0 ? listSnapshots(aws, [{ Name: "snapshot-id", Values: snapshots }], signal) : [],
  ]);
  for (const one of found.flat()) {
    const id = "ImageId" in one ? one.ImageId! : (one as { readonly SnapshotId?: string }).SnapshotId!;
    const request = { Resources: [id], Tags: [...tagsBy.get(id)!] };
    if ((one.Tags ?? []).length === 0) await aws.call("ec2.createTags", request, signal);
  }
}

/** Snapshots in the block device mappings of an AMI. */
function snapshotsIn({ BlockDeviceMappings = [] }: Image): readonly string[] {
  return BlockDeviceMappings.flatMap(({ Ebs }) => Ebs?.SnapshotId ?? []);
}
