import type { ExternalId, ImageStore, ImageTag, Step, StepContext, UploadOrder } from "@nodeyard/driver";
import { sameImage } from "@nodeyard/driver";
import { type Clock, sleep } from "@nodeyard/runtime";
import { CloudError } from "./cloud/errors.ts";
import type { FakeCloud } from "./cloud/fake-cloud.ts";

const CALL_MS = 60_000;
/** Time limit of the data of an upload, milliseconds. */
const DATA_MS = 3_600_000;

/** A stored image. */
export interface ShelfImage {
  readonly id: string;
  /** Null for images that other programs uploaded. */
  readonly tag: ImageTag | null;
  /** Whether its data is complete, so that it can be used. */
  readonly whole: boolean;
}

/** The storage of a fake cloud's images: its memory, or files in a folder. Methods reject with CloudError, or with the errors of files. */
export interface Shelf {
  /** Whether the cloud lists the images together with its machines. */
  readonly inCloud: boolean;
  list(signal: AbortSignal): Promise<readonly ShelfImage[]>;
  /** Also finds an image that lists do not show yet. */
  get(id: string, signal: AbortSignal): Promise<ShelfImage | undefined>;
  /** The id of the tag's image where it follows from the tag; a process that is killed may leave parts that no list shows. */
  idOf?(tag: ImageTag): string;
  /** Creates an image without data, or returns the one that the tag already has. */
  create(order: UploadOrder, signal: AbortSignal): Promise<ShelfImage>;
  /** Stores the data, completely or not at all. */
  fill(id: string, order: UploadOrder, signal: AbortSignal): Promise<void>;
  /** For an image that does not exist: no effect, or CloudError 404. */
  delete(id: string, signal: AbortSignal): Promise<void>;
  /** Longest lag of lists, milliseconds. */
  lagMs(): number;
}

/** Images in the cloud's memory, with its delays and faults. The image file is not read. */
export function cloudShelf(cloud: FakeCloud): Shelf {
  return {
    inCloud: true,
    list: async (signal) => (await cloud.listAll(signal)).images,
    get: (id, signal) => cloud.getImage(id, signal),
    create: ({ tag, name }, signal) => cloud.createImage({ tag, name }, signal),
    fill: (id, { size, sha256 }, signal) => cloud.fillImage(id, { size, sha256 }, signal),
    delete: (id, signal) => cloud.deleteImage(id, signal),
    lagMs: () => cloud.knobs.consistencyDelayMs,
  };
}

/** The image store of a fake cloud. As in real clouds, a record with the tag is created first, then the data is uploaded. */
export function imageStore(shelf: Shelf, formats: readonly string[], clock: Clock): ImageStore {
  return {
    formats,
    upload: (order, context) => upload(shelf, order, context),
    remove: (tag, context) => remove(shelf, tag, context, clock),
  };
}

/** A 404 is no error: the object is gone. */
export async function deleted(deletion: Promise<void>): Promise<void> {
  await deletion.catch((error) => {
    if (!(error instanceof CloudError && error.status === 404)) throw error;
  });
}

/** Uploads an image, or finishes one that an earlier attempt began. */
async function* upload(
  shelf: Shelf,
  order: UploadOrder,
  context: StepContext,
): AsyncGenerator<Step, ExternalId, void> {
  const { signal, externalId } = context;
  yield { step: "find", deadlineMs: CALL_MS };
  let image = await existing(shelf, order.tag, context);
  if (image === undefined) {
    yield { step: "image", deadlineMs: CALL_MS };
    // The tag serves as idempotency token: an image that lists do not show yet is returned.
    image = await shelf.create(order, signal);
  }
  const { id } = image;
  yield { step: "data", deadlineMs: DATA_MS, ...(externalId !== id && { save: { externalId: id } }) };
  // An image that an earlier attempt began has its record, and perhaps a part of its data.
  if (!image.whole) await shelf.fill(id, order, signal);
  order.progress(order.size);
  return id;
}

/** Removes the image of a tag. One that is gone is no error. */
async function* remove(
  shelf: Shelf,
  tag: ImageTag,
  context: StepContext,
  clock: Clock,
): AsyncGenerator<Step, void, void> {
  yield { step: "find", deadlineMs: CALL_MS };
  let image = await existing(shelf, tag, context);
  const lag = shelf.lagMs();
  if (image === undefined && lag > 0) {
    // An image that was uploaded a moment ago may not be listed yet; it is after this time.
    yield { step: "settle", deadlineMs: lag + CALL_MS };
    await sleep(clock, lag, context.signal);
    image = await existing(shelf, tag, context);
  }
  const id = image?.id ?? shelf.idOf?.(tag);
  if (id === undefined) return;
  yield { step: "delete", deadlineMs: CALL_MS };
  await deleted(shelf.delete(id, context.signal));
}

/** The tag's image: by the stored id if that image has the tag, otherwise by the tag. */
async function existing(
  shelf: Shelf,
  tag: ImageTag,
  { signal, externalId }: StepContext,
): Promise<ShelfImage | undefined> {
  if (typeof externalId === "string") {
    const byId = await shelf.get(externalId, signal);
    if (byId?.tag && sameImage(byId.tag, tag)) return byId;
  }
  const images = await shelf.list(signal);
  const shown = images.find((image) => image.tag !== null && sameImage(image.tag, tag));
  // A list may still show a deleted image, so read it by its id.
  return shown && shelf.get(shown.id, signal);
}
