import {
  CALL_MS,
  type ImageStore,
  imageSteps,
  isOfUpload,
  sameImage,
  unlessRefused,
  uploadKey,
} from "@nodeyard/driver";
import type { Site } from "../account.ts";
import { filesOf } from "./bucket.ts";
import { startSnapshot, writeSnapshot } from "./ebs-direct.ts";
import {
  type Item,
  isImage,
  isSnapshot,
  itemOf,
  itemsIn,
  listUploads,
  ownTasks,
  removeUploaded,
} from "./items.ts";
import { imageState, importFile, POLL_MS, published, registered, UPLOAD_MS, type Upload } from "./upload.ts";

/** Images of an account, made by any of the three methods (docs/how-to/connect-aws.md, "Images"), and what of their uploads may be left over. */
export function awsImages(site: Site) {
  const { aws, clock } = site;
  const settings = site.config.own;
  const formats = [settings.imageFormat ?? "raw"];
  const files = filesOf(site);
  const items = itemsIn(aws);
  const remove = (id: string, signal: AbortSignal) => removeUploaded(aws, id, signal);

  /** An upload goes from an AMI with its tag, or else from a snapshot, on. Its checkpoints count the blocks of ebs-direct. */
  function stepsOf(upload: Upload): ImageStore {
    const { importMethod } = upload.own;
    const isDirect = importMethod === "ebs-direct";
    return imageSteps<Item>({
      ...{ clock, formats, pollMs: POLL_MS },
      // With a bucket `image-import-timeout` is only the wait for a free place, as in Nodepool.
      uploadMs: (isDirect ? settings.imageImportTimeoutMs : null) ?? UPLOAD_MS,
      idOf: ({ id }) => id,
      metadataOf: ({ metadata }) => metadata,
      async find({ uploadId, installation }, signal) {
        // Another installation may have an upload of this number.
        const filters = [
          { Name: "tag:nodepool_upload_id", Values: [uploadId] },
          { Name: "tag:nodeyard_installation", Values: [installation] },
        ];
        const images = await items.images(filters, signal);
        // A snapshot of an import that still runs has the tag, too, and must not be taken for one that cannot be used.
        if (images.length > 0 || importMethod === "image") return images;
        const snapshots = await items.snapshots(filters, signal);
        return snapshots.filter(({ state }) => isDirect || state !== "pending");
      },
      // EC2 is eventually consistent: it may not list an AMI that was just registered.
      read: async (id, signal) => (await items.withIds([id], signal))[0] ?? itemOf(id),
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
      const { image, provider } = order.tag;
      const own = settings.diskimages.get(image);
      if (own === undefined)
        throw new Error(`diskimage ${image} is not among the diskimages of provider ${provider}`);
      const upload = { ...site, order, own };
      const id = yield* stepsOf(upload).upload(order, context);
      yield* published(upload, String(id), context.signal);
      return id;
    },
    /** Import tasks come first, because a running task still makes new resources. The lists are fetched anew. */
    async *remove(tag, { signal }) {
      yield { step: "find", deadlineMs: CALL_MS };
      // Without a bucket there are no imports.
      for (const { id: ImportTaskId, state, metadata } of files ? await ownTasks(site, signal) : [])
        if (state === "active" && isOfUpload(metadata, tag))
          await aws.call("ec2.cancelImportTask", { ImportTaskId }, signal);
      // By its key, also where S3 takes no tags of such names.
      await files?.delete(uploadKey(tag), signal);
      for (const { id, imageTag } of await listUploads(site, signal)) {
        if (!imageTag || !sameImage(imageTag, tag)) continue;
        yield { step: "delete", deadlineMs: CALL_MS };
        await remove(id, signal);
      }
    },
  };
  // Listed together, as which of them are left over shows only then.
  const image = { list: (signal: AbortSignal) => listUploads(site, signal), delete: remove };
  const found = { image, snapshot: { delete: remove }, ...(files && { object: files.part }) };
  return { store, parts: found };
}
