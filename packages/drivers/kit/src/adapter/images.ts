import { abortable } from "@nodeyard/runtime";
import type { ImageStore, UploadOrder } from "../offers.ts";
import type { Step, StepContext } from "../run-steps.ts";
import type { ExternalId, ImageTag } from "../tags.ts";
import { imageMetadata, imageTagOf, sameImage } from "../tags.ts";
import { type AdapterParts, CALL_MS, found } from "./drive.ts";
import type { Adapter } from "./types.ts";

/** Time limit of one upload, milliseconds: the limit that Nodepool has (docs/contract/builder.md, "Uploads"). */
const UPLOAD_MS = 3_600_000;

/** The image store of an adapter that can upload and delete images. */
export function imagesOf(parts: AdapterParts): ImageStore {
  return {
    formats: parts.adapter.imageFormats ?? ["qcow2"],
    upload: (order, context) => upload(parts, order, context),
    remove: (tag, context) => discard(parts, tag, context),
  };
}

/** Uploads an image. First it deletes what an interrupted upload left, because an adapter cannot tell whether that image is complete. */
async function* upload(
  parts: AdapterParts,
  order: UploadOrder,
  context: StepContext,
): AsyncGenerator<Step, ExternalId, void> {
  yield* discard(parts, order.tag, context);
  yield { step: "upload", deadlineMs: UPLOAD_MS };
  const { tag, ...rest } = order;
  const metadata = { ...order.metadata, ...imageMetadata(tag) };
  const image = { ...rest, image: tag.image, metadata };
  const externalId = await abortable(parts.adapter.uploadImage!(image, context.signal), context.signal);
  if (externalId === undefined) throw new TypeError("uploadImage returned no id");
  yield { step: "uploaded", deadlineMs: CALL_MS, save: { externalId } };
  return externalId;
}

async function* discard(
  parts: AdapterParts,
  tag: ImageTag,
  context: StepContext,
): AsyncGenerator<Step, void, void> {
  const { adapter } = parts;
  const ids = yield* found(parts, () => idsOf(adapter, tag, context), context.signal);
  for (const id of ids) {
    yield { step: "delete", deadlineMs: CALL_MS };
    await abortable(adapter.deleteImage!(id, context.signal), context.signal);
  }
}

/**
 * Ids of the images with the tag. The stored id is used only when the adapter lists no resources: an id may belong to another image by now.
 */
async function idsOf(
  adapter: Adapter,
  tag: ImageTag,
  { signal, externalId }: StepContext,
): Promise<readonly ExternalId[]> {
  if (adapter.listResources === undefined) return externalId === null ? [] : [externalId];
  const listed = await adapter.listResources(signal);
  return listed.flatMap(({ type, id, metadata }) => {
    const own = imageTagOf(metadata);
    return type === "image" && own !== null && sameImage(own, tag) ? [id] : [];
  });
}
