import type { ExternalId, ImageStore, ImageTag, Step, StepContext, UploadOrder } from "@nodeyard/driver";
import { removeObjects } from "./bucket.ts";
import { writeSnapshot } from "./ebs-direct.ts";
import { allImportTasks, imagesOf, snapshotsIn, snapshotsOf } from "./found.ts";
import { importFile } from "./import.ts";
import { CALL_MS, deleteSnapshot, deregister, type ImageParts, places, type Upload } from "./parts.ts";
import { published, registered } from "./publish.ts";
import { keyOf } from "./tags.ts";

/** Milliseconds for one upload with its import. */
const UPLOAD_MS = 6 * 3_600_000;

/** Images of an account, made by any of the three methods (docs/how-to/connect-aws.md, "Images"). Errors are the SDK's and DriverErrors. */
export function awsImageStore(parts: ImageParts): ImageStore {
  return {
    formats: [parts.format],
    upload: (order, context) => uploadImage(parts, order, context),
    remove: (tag, context) => removeImage(parts, tag, context),
  };
}

/**
 * Uploads an image, or continues: an AMI with the tag is kept, otherwise a snapshot, otherwise an import or a checkpoint. The
 * external id is the AMI's when it is known, and before that the checkpoint of ebs-direct.
 */
async function* uploadImage(
  parts: ImageParts,
  order: UploadOrder,
  { signal, externalId }: StepContext,
): AsyncGenerator<Step, ExternalId, void> {
  yield { step: "find", deadlineMs: CALL_MS };
  const own = parts.diskimages.get(order.tag.image);
  if (own === undefined)
    throw new Error(
      `diskimage ${order.tag.image} is not among the diskimages of provider ${order.tag.provider}`,
    );
  // With a bucket `image-import-timeout` is only the wait for a free place, as in Nodepool.
  const most = own.importMethod === "ebs-direct" ? (parts.importMs ?? UPLOAD_MS) : UPLOAD_MS;
  const end = parts.clock.monotonic() + most;
  const left = () => Math.max(1, end - parts.clock.monotonic());
  const upload: Upload = { ...parts, order, own, signal, externalId, left };
  const [there, ...more] = await imagesOf(parts.aws, order.tag, signal);
  // Two AMIs can exist when the answer to a registration was lost.
  for (const { ImageId } of more) await deregister(parts.aws, ImageId!, signal);
  const id = there?.ImageId ?? (yield* made(upload));
  yield* published(upload, id);
  order.progress(order.size);
  yield { step: "done", deadlineMs: CALL_MS, save: { externalId: id } };
  return id;
}

async function* made(upload: Upload): AsyncGenerator<Step, string, void> {
  const { own, signal, aws, order } = upload;
  if (own.importMethod === "image") return (yield* importFile(upload, "image")).image!;
  const [imported] = own.importMethod === "snapshot" ? await snapshotsOf(aws, order.tag, signal) : [];
  const snapshot =
    own.importMethod === "ebs-direct"
      ? yield* writeSnapshot(upload)
      : (imported?.SnapshotId ?? (yield* importFile(upload, "snapshot")).snapshots[0]!);
  yield { step: "image", deadlineMs: CALL_MS };
  return registered(upload, snapshot);
}

/**
 * Removes all resources with the tag in every region that the provider copies to. Import tasks come first, because a running task still
 * makes new resources. The lists are fetched anew, because shared lists may be older than the image.
 */
async function* removeImage(
  parts: ImageParts,
  tag: ImageTag,
  { signal }: StepContext,
): AsyncGenerator<Step, void, void> {
  yield { step: "find", deadlineMs: CALL_MS };
  const made = await cancelImports(parts, tag, signal);
  for (const aws of (await places(parts, signal)).values()) {
    yield { step: "delete", deadlineMs: CALL_MS };
    const images = await imagesOf(aws, tag, signal);
    const snapshots = await snapshotsOf(aws, tag, signal);
    const others = aws === parts.aws ? made : { images: [], snapshots: [] };
    for (const id of new Set([...images.map(({ ImageId }) => ImageId!), ...others.images]))
      await deregister(aws, id, signal);
    const inside = [...images.flatMap(snapshotsIn), ...snapshots.map(({ SnapshotId }) => SnapshotId!)];
    for (const id of new Set([...inside, ...others.snapshots])) await deleteSnapshot(aws, id, signal);
  }
  if (parts.bucket !== null) await removeObjects(parts.aws, parts.bucket, tag, signal);
}

/** Cancels the imports of an upload. Returns what they have already made, which may not have its tags yet. */
async function cancelImports({ aws, bucket }: ImageParts, tag: ImageTag, signal: AbortSignal) {
  // Without a bucket there are no imports.
  if (bucket === null) return { images: [], snapshots: [] };
  const tasks = await allImportTasks(aws, signal);
  const own = tasks.filter((task) => task.tag !== null && keyOf(task.tag) === keyOf(tag));
  for (const { id, status } of own)
    if (status === "active")
      await aws.ec2((ec2, to) => ec2.cancelImportTask({ ImportTaskId: id }, to), signal);
  return {
    images: own.flatMap(({ image }) => image ?? []),
    snapshots: own.flatMap(({ snapshots }) => snapshots),
  };
}
