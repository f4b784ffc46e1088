import type { ExternalId, ImageStore, ImageTag, Step, StepContext, UploadOrder } from "@nodeyard/driver";
import { sameImage } from "@nodeyard/driver";
import { type Clock, sleep } from "@nodeyard/runtime";
import { CloudError } from "./cloud/errors.ts";
import type { FakeCloud } from "./cloud/fake-cloud.ts";

const CALL_MS = 60_000;
const DATA_MS = 3_600_000;

/** An image as it lies there. */
export interface ShelfImage {
  readonly id: string;
  /** Null for images that others uploaded. */
  readonly tag: ImageTag | null;
  /** Whether its data have come: it is usable then. */
  readonly whole: boolean;
}

/** Where a fake cloud has its images: in its memory, or as files in a folder. */
export interface Shelf {
  /** Whether the cloud lists them together with its machines. */
  readonly inCloud: boolean;
  list(signal: AbortSignal): Promise<readonly ShelfImage[]>;
  /** What a list does not show yet is found, too. */
  get(id: string, signal: AbortSignal): Promise<ShelfImage | undefined>;
  /** Without data; the one that the tag has already, if there is one. */
  create(order: UploadOrder, signal: AbortSignal): Promise<ShelfImage>;
  /** With its data, whole or not at all. */
  fill(id: string, order: UploadOrder, signal: AbortSignal): Promise<void>;
  /** Not there: nothing, or CloudError 404. */
  delete(id: string, signal: AbortSignal): Promise<void>;
  /** For how long a list may lag behind, milliseconds. */
  lagMs(): number;
}

/** In the cloud's own memory, with its delays and faults; nothing reads the file. */
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

/** Images of a fake cloud: a record with the tag first, then the data, as with real ones. */
export function imageStore(shelf: Shelf, formats: readonly string[], clock: Clock): ImageStore {
  return {
    formats,
    upload: (order, context) => upload(shelf, order, context),
    remove: (tag, context) => remove(shelf, tag, context, clock),
  };
}

/** Gone already is as good. */
export async function deleted(deletion: Promise<void>): Promise<void> {
  await deletion.catch((error) => {
    if (!(error instanceof CloudError && error.status === 404)) throw error;
  });
}

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
    // The tag is the request's idempotency token: what a list does not show yet is returned.
    image = await shelf.create(order, signal);
  }
  const { id } = image;
  yield { step: "data", deadlineMs: DATA_MS, ...(externalId !== id && { save: { externalId: id } }) };
  if (!image.whole) await shelf.fill(id, order, signal);
  order.progress(order.size);
  return id;
}

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
    // What was uploaded a moment ago may not be listed yet; after this long it is.
    yield { step: "settle", deadlineMs: lag + CALL_MS };
    await sleep(clock, lag, context.signal);
    image = await existing(shelf, tag, context);
  }
  if (image === undefined) return;
  yield { step: "delete", deadlineMs: CALL_MS };
  await deleted(shelf.delete(image.id, context.signal));
}

/** By the stored id where that is really the tag's own, else by the tag. */
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
  // A list may still show what has gone.
  return shown && shelf.get(shown.id, signal);
}
