import type { Image, Snapshot } from "@aws-sdk/client-ec2";
import { type CloudPart, type FoundPart, imageTagOf } from "@nodeyard/driver";
import type { Aws } from "../client/index.ts";
import { metadataOf } from "../tags.ts";
import { listObjects, removeObjects } from "./bucket.ts";
import { allImportTasks, type ImportTask, listImages, listSnapshots, snapshotsIn } from "./found.ts";
import { deleteSnapshot, deregister, type ImageParts, places } from "./parts.ts";
import { tagOfKey } from "./tags.ts";

/** Owner of the uploads that are listed. */
interface Owner {
  readonly installation: string;
  readonly provider: string;
}

/**
 * All resources that uploads of a provider made, in its region and in the regions it copies to. A snapshot is removed with the AMI that
 * boots from it, so it is listed only when there is no such AMI.
 */
async function listUploads(
  parts: ImageParts,
  owner: Owner,
  signal: AbortSignal,
): Promise<readonly FoundPart[]> {
  const { aws, bucket } = parts;
  const Filters = [{ Name: "tag:nodepool_provider_name", Values: [owner.provider] }];
  const all: FoundPart[] = [];
  for (const [region, at] of await places(parts, signal)) {
    // AMIs are listed last: the snapshot of an AMI that is made meanwhile is then known to be in use.
    const tagged = await listSnapshots(at, { Filters }, signal);
    // Results of imports have no tags until `importFile` sets them, so they are found by their tasks.
    const imported =
      at === aws && bucket !== null ? await adopted(aws, owner, signal) : { images: [], snapshots: [] };
    const images = [...(await listImages(at, { Filters }, signal)), ...imported.images];
    const used = new Set(images.flatMap(snapshotsIn));
    // Ids are unique in a region only. The name of another region is put before the id, for the deletion.
    const place = at === aws ? "" : `${region}/`;
    all.push(...images.flatMap((image) => resource("image", `${place}${image.ImageId}`, image)));
    for (const snapshot of [...tagged, ...imported.snapshots])
      if (!used.has(snapshot.SnapshotId!))
        all.push(...resource("snapshot", `${place}${snapshot.SnapshotId}`, snapshot));
  }
  return bucket === null ? all : [...all, ...(await listObjects(aws, bucket, owner, signal))];
}

/** The three kinds of these resources. They are listed together, as which of them are left over shows only then. */
export function uploadedParts(parts: ImageParts, owner: Owner): Readonly<Record<string, CloudPart>> {
  const at = (id: string) => {
    const [name = "", region] = id.split("/").reverse();
    return { name, aws: region === undefined ? parts.aws : parts.aws.in(region) };
  };
  return {
    image: {
      list: (signal) => listUploads(parts, owner, signal),
      async delete(id, signal) {
        const { aws, name } = at(id);
        // Read before the deletion, after which EC2 no longer says which snapshots it had.
        const [image] = await listImages(aws, { Filters: [{ Name: "image-id", Values: [name] }] }, signal);
        await deregister(aws, name, signal);
        for (const snapshot of image === undefined ? [] : snapshotsIn(image))
          await deleteSnapshot(aws, snapshot, signal);
      },
    },
    snapshot: { delete: (id, signal) => deleteSnapshot(at(id).aws, at(id).name, signal) },
    object: {
      async delete(id, signal) {
        const tag = tagOfKey(id);
        if (tag !== null && parts.bucket !== null) await removeObjects(parts.aws, parts.bucket, tag, signal);
      },
    },
  };
}

/**
 * Tags the results of imports that have no tags because the launcher that waited for them ended. They get the tags of the task
 * that made them. Resources that no tagged task names are left alone: they belong to other users of the account.
 */
async function adopted(aws: Aws, owner: Owner, signal: AbortSignal) {
  const own = (await allImportTasks(aws, signal)).filter(
    ({ tag }) => tag?.installation === owner.installation && tag.provider === owner.provider,
  );
  const by = new Map<string, ImportTask>();
  for (const task of own)
    for (const id of [...task.snapshots, ...(task.image === null ? [] : [task.image])]) by.set(id, task);
  const ids = (prefix: string) => [...by.keys()].filter((id) => id.startsWith(prefix));
  // Filters are used because a request by ids fails when one of them does not exist.
  const [images, snapshots] = await Promise.all([
    ids("ami-").length === 0
      ? []
      : listImages(aws, { Filters: [{ Name: "image-id", Values: ids("ami-") }] }, signal),
    ids("snap-").length === 0
      ? []
      : listSnapshots(aws, { Filters: [{ Name: "snapshot-id", Values: ids("snap-") }] }, signal),
  ]);
  const untagged = <T extends Image | Snapshot>(found: readonly T[], id: (one: T) => string) =>
    found
      .filter(({ Tags }) => (Tags ?? []).length === 0)
      .map((one) => ({ ...one, Tags: [...by.get(id(one))!.tags] }));
  const result = {
    images: untagged(images, ({ ImageId }) => ImageId!),
    snapshots: untagged(snapshots, ({ SnapshotId }) => SnapshotId!),
  };
  for (const { ImageId, Tags } of result.images) await tag(aws, ImageId!, Tags, signal);
  for (const { SnapshotId, Tags } of result.snapshots) await tag(aws, SnapshotId!, Tags, signal);
  return result;
}

async function tag(
  aws: Aws,
  id: string,
  Tags: NonNullable<Image["Tags"]>,
  signal: AbortSignal,
): Promise<void> {
  await aws.ec2((ec2, to) => ec2.createTags({ Resources: [id], Tags }, to), signal);
}

/** The resource, unless its tags name no upload. */
function resource(type: string, id: string, { Tags }: Pick<Image, "Tags">): readonly FoundPart[] {
  const imageTag = imageTagOf(metadataOf(Tags));
  return imageTag === null ? [] : [{ type, id, tag: null, imageTag }];
}
