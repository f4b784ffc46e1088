import {
  type Calls,
  DriverError,
  type ExternalId,
  type ImageStore,
  type ImageTag,
  type Step,
  type StepContext,
  type UploadOrder,
} from "@nodeyard/driver";
import { type Clock, sleep } from "@nodeyard/runtime";
import { sameImage } from "../cloud/images.ts";
import type { Shelf, ShelfImage } from "./shelf.ts";

const CALL_MS = 60_000;
const DATA_MS = 3_600_000;

/** Images of a fake cloud: a record with the tag first, then the data, as with real ones. */
export class FakeImageStore implements ImageStore {
  readonly formats: readonly string[];
  readonly #shelf: Shelf;
  readonly #clock: Clock;
  readonly #calls: Calls;

  constructor(shelf: Shelf, formats: readonly string[], clock: Clock, calls: Calls) {
    this.#shelf = shelf;
    this.formats = formats;
    this.#clock = clock;
    this.#calls = calls;
  }

  async *upload(order: UploadOrder, context: StepContext): AsyncGenerator<Step, ExternalId, void> {
    const { tag, name, format, metadata, size } = order;
    yield { step: "find", deadlineMs: CALL_MS };
    let image = await this.#existing(tag, context);
    if (image === undefined) {
      yield { step: "image", deadlineMs: CALL_MS };
      // The tag is the request's idempotency token: what a list does not show yet is returned.
      image = await this.#calls.run("upload", context.signal, (signal) =>
        this.#shelf.create({ tag, name, format, metadata }, signal),
      );
    }
    const { id } = image;
    yield {
      step: "data",
      deadlineMs: DATA_MS,
      ...(context.externalId !== id && { save: { externalId: id } }),
    };
    if (!image.whole)
      await this.#calls.run("upload", context.signal, (signal) => this.#shelf.fill(id, order, signal));
    order.progress(size);
    return id;
  }

  async *remove(tag: ImageTag, context: StepContext): AsyncGenerator<Step, void, void> {
    yield { step: "find", deadlineMs: CALL_MS };
    let image = await this.#existing(tag, context);
    const lag = this.#shelf.lagMs();
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
      await this.#calls.run("removeImage", signal, (own) => this.#shelf.delete(id, own));
    } catch (error) {
      if (!(error instanceof DriverError && error.kind === "not-found")) throw error;
    }
  }

  /** By the stored id where that is really the tag's own, else by the tag. */
  async #existing(tag: ImageTag, { signal, externalId }: StepContext): Promise<ShelfImage | undefined> {
    if (typeof externalId === "string") {
      const byId = await this.#calls.run("image", signal, (own) => this.#shelf.get(externalId, own));
      if (byId?.tag && sameImage(byId.tag, tag)) return byId;
    }
    const images = await this.#calls.run("list", signal, (own) => this.#shelf.list(own));
    const shown = images.find((image) => image.tag !== null && sameImage(image.tag, tag));
    // A list may still show what has gone.
    return shown && this.#calls.run("image", signal, (own) => this.#shelf.get(shown.id, own));
  }
}
