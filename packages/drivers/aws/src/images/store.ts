import { CALL_MS, type ImageStore, imageSteps, sameImage, unlessRefused, uploadKey } from "@nodeyard/driver";
import { filesOf } from "./bucket.ts";
import { startSnapshot, writeSnapshot } from "./ebs-direct.ts";
import { importFile } from "./import.ts";
import {
  type Item,
  isImage,
  isSnapshot,
  itemOf,
  itemsWith,
  listImages,
  listSnapshots,
  ofUpload,
} from "./items.ts";
import { listUploads, ownTasks, removeUploaded } from "./listing.ts";
import { imageState, published, registered } from "./publish.ts";
import { type ImageParts, POLL_MS, UPLOAD_MS, type Upload } from "./upload.ts";

/** Images of an account, made by any of the three methods (docs/how-to/connect-aws.md, "Images"), and what of their uploads may be left over. */
export function awsImages(parts: ImageParts) {
  const { aws, settings, clock } = parts;
  const formats = [settings.imageFormat ?? "raw"];
  const files = filesOf(parts);
  const remove = (id: string, signal: AbortSignal) => removeUploaded(parts, id, signal);

  /** An upload goes from an AMI with its tag, or else from a snapshot, on. Its checkpoints count the blocks of ebs-direct. */
  function stepsOf(upload: Upload): ImageStore {
    const { importMethod } = upload.own;
    const isDirect = importMethod === "ebs-direct";
    return imageSteps<Item>({
      ...{ clock, formats, pollMs: POLL_MS },
      // With a bucket `image-import-timeout` is only the wait for a free place, as in Nodepool.
      uploadMs: (isDirect ? settings.imageImportTimeoutMs : null) ?? UPLOAD_MS,
      idOf: ({ id }) => id,
      async find(tag, signal) {
        const images = await ofUpload(aws, listImages, tag, signal);
        // A snapshot of an import that still runs has the tag, too, and must not be taken for one that cannot be used.
        if (images.length > 0 || importMethod === "image") return images;
        const snapshots = await ofUpload(aws, listSnapshots, tag, signal);
        return snapshots.filter(({ state }) => isDirect || state !== "pending");
      },
      async read(id, signal) {
        const [found] = await itemsWith(aws, [id], signal);
        // EC2 is eventually consistent: it may not list an AMI that was just registered.
        return found ?? itemOf(id);
      },
      stateOf(item) {
        if (isImage(item.id)) return imageState(item);
        const { state } = item;
        // Blocks can still be written to a pending one.
        const isUsable = state === "completed" || (isDirect && state === "pending");
        return isUsable ? "open" : `is ${state}`;
      },
      create: async ({ tag }, signal) => (isDirect ? startSnapshot(upload, signal) : uploadKey(tag)),
      async *send(id, _, from, signal) {
        let made = id;
        if (isDirect) yield* writeSnapshot(upload, id, from, signal);
        else if (!isSnapshot(id)) made = yield* importFile(upload, files, signal);
        if (isSnapshot(made)) {
          yield { step: "image", deadlineMs: CALL_MS };
          made = await registered(upload, made, signal);
        }
        yield made;
      },
      // Also the file of an attempt that a crash ended after its import.
      ...(files && !isDirect && { clean: (tag, signal) => files.delete(uploadKey(tag), signal) }),
      // Two AMIs of one snapshot can exist when the answer to a registration was lost.
      delete: (id, signal) => unlessRefused(remove(id, signal), "InvalidSnapshot.InUse"),
    });
  }

  const store: ImageStore = {
    formats,
    async *upload(order, context) {
      const own = settings.diskimages.get(order.tag.image);
      if (own === undefined)
        throw new Error(
          `diskimage ${order.tag.image} is not among the diskimages of provider ${order.tag.provider}`,
        );
      const upload = { ...parts, order, own };
      const id = yield* stepsOf(upload).upload(order, context);
      yield* published(upload, String(id), context.signal);
      return id;
    },
    /** Import tasks come first, because a running task still makes new resources. The lists are fetched anew. */
    async *remove(tag, { signal }) {
      yield { step: "find", deadlineMs: CALL_MS };
      // Without a bucket there are no imports.
      for (const task of files ? await ownTasks(parts, signal) : [])
        if (task.state === "active" && sameImage(task.tag!, tag))
          await aws.call("ec2.cancelImportTask", { ImportTaskId: task.id }, signal);
      // By its key, also where S3 takes no tags of such names.
      await files?.delete(uploadKey(tag), signal);
      for (const { id, imageTag } of await listUploads(parts, signal)) {
        if (!imageTag || !sameImage(imageTag, tag)) continue;
        yield { step: "delete", deadlineMs: CALL_MS };
        await remove(id, signal);
      }
    },
  };
  // Listed together, as which of them are left over shows only then.
  const image = { list: (signal: AbortSignal) => listUploads(parts, signal), delete: remove };
  const found = { image, snapshot: { delete: remove }, ...(files && { object: files.part }) };
  return { store, parts: found };
}
