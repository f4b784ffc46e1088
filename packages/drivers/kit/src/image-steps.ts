import type { Clock } from "@nodeyard/runtime";
import { polled } from "./calls.ts";
import { DriverError } from "./errors.ts";
import { CALL_MS, type Saving, type Steps, savingAfter } from "./machine-steps.ts";
import type { ImageStore, UploadOrder } from "./offers.ts";
import type { Step, StepContext } from "./run-steps.ts";
import { type ExternalId, type ImageTag, isOfUpload } from "./tags.ts";

/** Default of `pollMs`. */
const POLL_MS = 2_000;

/** States of an image that is kept. */
const USABLE: readonly string[] = ["open", "busy", "ready"];

/** What a cloud says of its images, for the steps of an upload and of a removal. */
export interface ImageWork<I> {
  readonly clock: Clock;
  /** As in `ImageStore`. */
  readonly formats: readonly string[];
  /** Milliseconds for sending a file, and for the cloud's work on it afterwards. */
  readonly uploadMs: number;
  /** Pause between two reads of an image that the cloud still processes, milliseconds. Default 2,000. */
  readonly pollMs?: number;
  readonly idOf: (image: I) => string;
  /** The form in which records keep an image that is ready. Default: `idOf`. */
  readonly externalIdOf?: (image: I) => ExternalId;
  /** The metadata of an image, which hold its tag. Default: `find` goes by a name that follows from the whole tag, and proves it. */
  readonly metadataOf?: (image: I) => Readonly<Record<string, unknown>>;
  /** Images that may carry the tag, in any state; the kit compares all of it, as clouds search by a part or ignore a filter. Undefined: none. */
  find(tag: ImageTag, signal: AbortSignal): Promise<readonly (I | undefined)[]>;
  /** Reads one; undefined: it is gone. */
  read(id: string, signal: AbortSignal): Promise<I | undefined>;
  /**
   * The state of an image: "open" takes data, also what an earlier attempt did not send; "busy" is processed; "ready" can be booted and has the
   * bytes of the file; any other text, such as "has another checksum", says why it never will be. `isSent`: this attempt has sent all data.
   */
  stateOf(image: I, order: UploadOrder, isSent: boolean): "open" | "busy" | "ready" | (string & {});
  /** Makes the image with its tag in the same call, and resolves to its id. Where ids follow from the tag, `send` may make it. */
  create(order: UploadOrder, signal: AbortSignal): Promise<string>;
  /**
   * Sends the file from piece `from` on, and yields how many pieces have arrived without a gap, which is kept for an attempt after a crash; steps
   * of its own; and an id, if the image is read by another one from then on. A promise: the cloud takes a file only as
   * a whole.
   */
  send(
    id: string,
    order: UploadOrder,
    from: number,
    signal: AbortSignal,
  ): AsyncIterable<number | string | Step> | Promise<void>;
  /** One that is gone is no error. */
  delete(id: string, signal: AbortSignal): Promise<unknown>;
  /** Deletes what an upload needed besides its image, such as the file in a bucket: when the image is ready, and with it. Nothing there is no error. */
  clean?(tag: ImageTag, signal: AbortSignal): Promise<void>;
}

/**
 * The store of a cloud whose images carry metadata. Steps of an upload: find, image, upload (a checkpoint at each of its yields), wait, clean. An
 * image of an earlier attempt is kept when it is whole, continued when it is open, and else deleted: a tag must not have two images.
 */
export function imageSteps<I>(work: ImageWork<I>): ImageStore {
  const { clock, formats, uploadMs, pollMs = POLL_MS, idOf, externalIdOf = idOf, metadataOf } = work;

  const own = async (tag: ImageTag, signal: AbortSignal) =>
    (await work.find(tag, signal))
      .filter((image) => image !== undefined)
      .filter((image) => !metadataOf || isOfUpload(metadataOf(image), tag));

  async function* upload(order: UploadOrder, { signal, externalId }: StepContext): Steps<ExternalId> {
    yield { step: "find", deadlineMs: CALL_MS };
    let kept: I | undefined;
    for (const one of await own(order.tag, signal)) {
      if (kept === undefined && USABLE.includes(work.stateOf(one, order, false))) kept = one;
      else await work.delete(idOf(one), signal);
    }
    const state = kept && work.stateOf(kept, order, false);
    let id = kept && idOf(kept);
    if (id === undefined) {
      yield { step: "image", deadlineMs: CALL_MS };
      id = await work.create(order, signal);
    }
    const saving = savingAfter(externalId);
    if (state === undefined || state === "open")
      id = yield* sent(id, order, piecesOf(externalId, id), saving, signal);
    let image = kept;
    if (state !== "ready") {
      yield { step: "wait", deadlineMs: uploadMs, ...saving(id) };
      image = await polled(clock, pollMs, signal, () => ready(id, order, signal));
    }
    // What an earlier attempt sent; the rest was reported as it went.
    if (state !== undefined) order.progress(order.size);
    const final = externalIdOf(image!);
    if (work.clean) {
      yield { step: "clean", deadlineMs: CALL_MS, ...saving(final) };
      await work.clean(order.tag, signal);
    }
    return final;
  }

  /** Sends the file, and returns the id by which its image is read from then on. */
  async function* sent(
    first: string,
    order: UploadOrder,
    from: number,
    saving: Saving,
    signal: AbortSignal,
  ): Steps<string> {
    let id = first;
    // The limit is for the whole file, so each piece gets what those before it left.
    const end = clock.monotonic() + uploadMs;
    yield { step: "upload", deadlineMs: uploadMs, ...saving(from === 0 ? id : { id, pieces: from }) };
    const sending = work.send(id, order, from, signal);
    if (sending instanceof Promise) await sending;
    else
      for await (const said of sending)
        if (typeof said === "string") id = said;
        else if (typeof said === "object") yield said;
        else {
          const deadlineMs = Math.max(1, end - clock.monotonic());
          yield { step: "upload", deadlineMs, ...saving({ id, pieces: said }) };
        }
    return id;
  }

  /** Undefined: the cloud still works on it. */
  async function ready(id: string, order: UploadOrder, signal: AbortSignal): Promise<I | undefined> {
    const image = await work.read(id, signal);
    const state = image === undefined ? "is gone" : work.stateOf(image, order, true);
    if (state === "ready") return image;
    if (state === "busy") return undefined;
    await work.delete(id, signal);
    throw new DriverError("transient", `image ${id} ${state}`);
  }

  async function* remove(tag: ImageTag, { signal }: StepContext): Steps<void> {
    yield { step: "find", deadlineMs: CALL_MS };
    // More than one may exist after a lost answer.
    for (const image of await own(tag, signal)) {
      yield { step: "delete", deadlineMs: CALL_MS };
      await work.delete(idOf(image), signal);
    }
    if (work.clean) {
      yield { step: "clean", deadlineMs: CALL_MS };
      await work.clean(tag, signal);
    }
  }

  return { formats, upload, remove };
}

/** How many pieces of this image have arrived, as far as it was stored. A checkpoint of another image counts as none. */
function piecesOf(externalId: ExternalId | null, id: string): number {
  if (typeof externalId !== "object" || externalId?.id !== id) return 0;
  return typeof externalId.pieces === "number" ? externalId.pieces : 0;
}
