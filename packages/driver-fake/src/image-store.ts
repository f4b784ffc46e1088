import {
  DriverError,
  type ExternalId,
  type ImageStore,
  type ImageTag,
  type Step,
  type StepContext,
  type UploadOrder,
} from "@nodeyard/driver";
import { type Clock, sleep } from "@nodeyard/runtime";
import type { FakeCloud } from "./cloud/fake-cloud.ts";
import { type FakeImage, sameImage } from "./cloud/images.ts";

const CALL_MS = 60_000;

/** A call that ends with its signal and throws DriverErrors only. */
export type Call = <T>(
  place: string,
  signal: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
) => Promise<T>;

/** Images of the fake cloud: a record with the tag first, then the data, as with real ones. Nothing reads the file. */
export class FakeImageStore implements ImageStore {
  readonly formats = ["qcow2", "raw"];
  readonly #cloud: FakeCloud;
  readonly #clock: Clock;
  readonly #call: Call;

  constructor(cloud: FakeCloud, clock: Clock, call: Call) {
    this.#cloud = cloud;
    this.#clock = clock;
    this.#call = call;
  }

  async *upload(order: UploadOrder, context: StepContext): AsyncGenerator<Step, ExternalId, void> {
    const { tag, name, size, sha256 } = order;
    yield { step: "find", deadlineMs: CALL_MS };
    let image = await this.#existing(tag, context);
    if (image === undefined) {
      yield { step: "image", deadlineMs: CALL_MS };
      // The tag is the request's idempotency token: what a list does not show yet is returned.
      image = await this.#call("upload", context.signal, (signal) =>
        this.#cloud.createImage({ tag, name }, signal),
      );
    }
    const { id } = image;
    yield {
      step: "data",
      deadlineMs: CALL_MS,
      ...(context.externalId !== id && { save: { externalId: id } }),
    };
    if (!image.whole)
      await this.#call("upload", context.signal, (signal) =>
        this.#cloud.fillImage(id, { size, sha256 }, signal),
      );
    order.progress(size);
    return id;
  }

  async *remove(tag: ImageTag, context: StepContext): AsyncGenerator<Step, void, void> {
    yield { step: "find", deadlineMs: CALL_MS };
    let image = await this.#existing(tag, context);
    const lag = this.#cloud.knobs.consistencyDelayMs;
    if (image === undefined && lag > 0) {
      // What was uploaded a moment ago may not be listed yet; after this long it is.
      yield { step: "settle", deadlineMs: lag + CALL_MS };
      await sleep(this.#clock, lag, context.signal);
      image = await this.#existing(tag, context);
    }
    if (image === undefined) return;
    yield { step: "delete", deadlineMs: CALL_MS };
    await this.delete(image.id, context.signal);
  }

  /** Gone already is as good. */
  async delete(id: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#call("removeImage", signal, (own) => this.#cloud.deleteImage(id, own));
    } catch (error) {
      if (!(error instanceof DriverError && error.kind === "not-found")) throw error;
    }
  }

  /** By the stored id where that is really the tag's own, else by the tag. */
  async #existing(tag: ImageTag, { signal, externalId }: StepContext): Promise<FakeImage | undefined> {
    if (typeof externalId === "string") {
      const byId = await this.#call("image", signal, (own) => this.#cloud.getImage(externalId, own));
      if (byId?.tag && sameImage(byId.tag, tag)) return byId;
    }
    const { images } = await this.#call("list", signal, (own) => this.#cloud.listAll(own));
    const shown = images.find((image) => image.tag !== null && sameImage(image.tag, tag));
    // A list may still show what has gone.
    return shown && this.#call("image", signal, (own) => this.#cloud.getImage(shown.id, own));
  }
}
