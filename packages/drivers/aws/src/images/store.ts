import {
  CALL_MS,
  type ExternalId,
  type ImageStore,
  type StepContext,
  type Steps,
  sameImage,
  type UploadOrder,
} from "@nodeyard/driver";
import { removeObjects } from "./bucket.ts";
import { writeSnapshot } from "./ebs-direct.ts";
import { allImportTasks, importFile } from "./import.ts";
import { listUploads, uploadedParts } from "./listing.ts";
import { type ImageParts, listImages, listSnapshots, ofUpload, type Upload } from "./parts.ts";
import { published, registered } from "./publish.ts";

/** Milliseconds for one upload with its import. */
const UPLOAD_MS = 6 * 3_600_000;

/** Images of an account, made by any of the three methods (docs/how-to/connect-aws.md, "Images"). Errors are the SDK's and DriverErrors. */
export function awsImageStore(parts: ImageParts): ImageStore {
  const { aws, settings } = parts;
  return {
    formats: [settings.imageFormat ?? "raw"],
    upload: (order, context) => uploadImage(parts, order, context),
    /** Import tasks come first, because a running task still makes new resources. The lists are fetched anew. */
    async *remove(tag, { signal }) {
      yield { step: "find", deadlineMs: CALL_MS };
      // Without a bucket there are no imports.
      for (const task of settings.bucket === null ? [] : await allImportTasks(aws, signal))
        if (task.status === "active" && task.tag !== null && sameImage(task.tag, tag))
          await aws.call("ec2.cancelImportTask", { ImportTaskId: task.id }, signal);
      // By its key, also where S3 takes no tags of such names.
      if (settings.bucket !== null) await removeObjects(aws, settings.bucket, tag, signal);
      const kinds = uploadedParts(parts, tag);
      for (const { type = "image", id, imageTag } of await listUploads(parts, tag, signal)) {
        if (!imageTag || !sameImage(imageTag, tag)) continue;
        yield { step: "delete", deadlineMs: CALL_MS };
        await kinds[type]!.delete(id, signal);
      }
    },
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
): Steps<ExternalId> {
  yield { step: "find", deadlineMs: CALL_MS };
  const { aws, clock, settings } = parts;
  const own = settings.diskimages.get(order.tag.image);
  if (own === undefined)
    throw new Error(
      `diskimage ${order.tag.image} is not among the diskimages of provider ${order.tag.provider}`,
    );
  // With a bucket `image-import-timeout` is only the wait for a free place, as in Nodepool.
  const isDirect = own.importMethod === "ebs-direct";
  const end = clock.monotonic() + ((isDirect ? settings.imageImportTimeoutMs : null) ?? UPLOAD_MS);
  const left = () => Math.max(1, end - clock.monotonic());
  const upload: Upload = { ...parts, order, own, signal, externalId, left };
  const [there, ...more] = await ofUpload(upload, listImages);
  // Two AMIs can exist when the answer to a registration was lost.
  for (const { ImageId } of more) await aws.maybe("ec2.deregisterImage", { ImageId }, signal);
  const id = there?.ImageId ?? (yield* made(upload));
  yield* published(upload, id);
  order.progress(order.size);
  yield { step: "done", deadlineMs: CALL_MS, save: { externalId: id } };
  return id;
}

async function* made(upload: Upload): Steps<string> {
  const { importMethod } = upload.own;
  if (importMethod === "image") return yield* importFile(upload, "image");
  const snapshot = importMethod === "ebs-direct" ? yield* writeSnapshot(upload) : yield* imported(upload);
  yield { step: "image", deadlineMs: CALL_MS };
  return registered(upload, snapshot);
}

async function* imported(upload: Upload): Steps<string> {
  const [found] = await ofUpload(upload, listSnapshots);
  return found?.SnapshotId ?? (yield* importFile(upload, "snapshot"));
}
