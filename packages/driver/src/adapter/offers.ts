import { sleep } from "@nodeyard/runtime";
import type { ExternalId, Step, StepContext, Tag } from "../contract.ts";
import type { Console, ImageStore, ImageTag, Notices, Offers, UploadOrder } from "../offers.ts";
import { imageMetadata, imageTagOf, machineMetadata, sameImage } from "../tags.ts";
import type { Adapter, Instance, Pacing } from "./types.ts";

const CALL_MS = 120_000;
/** For one upload, the old clouds' own limit (docs/contract/builder.md, "Uploads"), milliseconds. */
const UPLOAD_MS = 3_600_000;

/** What a provider lends to its offers. */
export interface Calls {
  readonly pacing: Pick<Pacing, "clock" | "listLagMs">;
  call<T>(place: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
  instancesOf(tag: Tag, signal: AbortSignal): Promise<readonly Instance[]>;
  steps<T>(
    place: string,
    signal: AbortSignal,
    work: () => AsyncGenerator<Step, T, void>,
  ): AsyncGenerator<Step, T, void>;
}

/** What the adapter has beyond machines. */
export function offersOf(adapter: Adapter, calls: Calls): Offers {
  const { zones, uploadImage, deleteImage, consoleLog } = adapter;
  const notices = noticesOf(adapter, calls);
  return {
    ...(zones && {
      zones: {
        list: (pool, signal) =>
          calls.call("zones", signal, async () => [...(await zones.call(adapter, pool, signal))].sort()),
      },
    }),
    ...(consoleLog && { console: consoleOf(adapter, calls) }),
    ...(uploadImage && deleteImage && { images: imagesOf(adapter, calls) }),
    ...(Object.keys(notices).length > 0 && { notices }),
  };
}

function consoleOf(adapter: Adapter, calls: Calls): Console {
  return {
    read: (tag, context) =>
      calls.call("console", context.signal, async () => {
        const id = await idOf(calls, tag, context);
        return id === null ? null : ((await adapter.consoleLog?.(id, context.signal)) ?? null);
      }),
  };
}

function noticesOf(adapter: Adapter, calls: Calls): Notices {
  const { nodeAttributes, nodeReused, notifyScanFailure, nodeDeleted } = adapter;
  return {
    ...(nodeAttributes && {
      attributes: (order, signal) =>
        calls.call("attributes", signal, () => nodeAttributes.call(adapter, order, signal)),
    }),
    ...(nodeReused && {
      reused: (tag, request, signal) =>
        calls.call("reused", signal, () => nodeReused.call(adapter, machineMetadata(tag), request, signal)),
    }),
    ...(notifyScanFailure && {
      scanFailed: (tag, context) =>
        calls.call("scanFailed", context.signal, async () => {
          const id = await idOf(calls, tag, context);
          if (id !== null) await notifyScanFailure.call(adapter, id, context.signal);
        }),
    }),
    ...(nodeDeleted && {
      deleted: (tag, signal) =>
        calls.call("deleted", signal, () => nodeDeleted.call(adapter, machineMetadata(tag), signal)),
    }),
  };
}

async function idOf(calls: Calls, tag: Tag, { signal, externalId }: StepContext): Promise<ExternalId | null> {
  const [instance] = await calls.instancesOf(tag, signal);
  return instance?.externalId ?? externalId;
}

function imagesOf(adapter: Adapter, { steps, pacing }: Calls): ImageStore {
  return {
    formats: adapter.imageFormats ?? ["qcow2"],
    upload: (order, context) =>
      steps("upload", context.signal, () => upload(adapter, pacing, order, context)),
    remove: (tag, context) =>
      steps("removeImage", context.signal, () => discard(adapter, pacing, tag, context)),
  };
}

/** What an upload that was cut off has left is removed first: an adapter cannot say whether it is whole. */
async function* upload(
  adapter: Adapter,
  pacing: Calls["pacing"],
  order: UploadOrder,
  context: StepContext,
): AsyncGenerator<Step, ExternalId, void> {
  yield* discard(adapter, pacing, order.tag, context);
  yield { step: "upload", deadlineMs: UPLOAD_MS };
  const { tag, ...rest } = order;
  const metadata = { ...order.metadata, ...imageMetadata(tag) };
  const externalId = await adapter.uploadImage?.({ ...rest, image: tag.image, metadata }, context.signal);
  if (externalId === undefined) throw new TypeError("uploadImage returned no id");
  yield { step: "uploaded", deadlineMs: CALL_MS, save: { externalId } };
  return externalId;
}

async function* discard(
  adapter: Adapter,
  { clock, listLagMs }: Calls["pacing"],
  tag: ImageTag,
  context: StepContext,
): AsyncGenerator<Step, void, void> {
  const { signal } = context;
  yield { step: "find", deadlineMs: CALL_MS };
  let ids = await idsOf(adapter, tag, context);
  if (ids.length === 0 && listLagMs > 0) {
    // What was uploaded a moment ago may not be listed yet; after this long it is.
    yield { step: "settle", deadlineMs: listLagMs + CALL_MS };
    await sleep(clock, listLagMs, signal);
    ids = await idsOf(adapter, tag, context);
  }
  for (const id of ids) {
    yield { step: "delete", deadlineMs: CALL_MS };
    await adapter.deleteImage?.(id, signal);
  }
}

/** By the tag alone: an id that is not listed may be another's. An adapter that lists nothing has only the stored id to go by. */
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
