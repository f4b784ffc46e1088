import type { UploadOrder } from "@nodeyard/driver";
import type { FakeCloud } from "../cloud/fake-cloud.ts";
import type { NewShelfImage, Shelf, ShelfImage } from "./shelf.ts";

/** In the cloud's own memory, with its delays and faults; nothing reads the file. */
export class CloudShelf implements Shelf {
  readonly inCloud = true;
  readonly #cloud: FakeCloud;

  constructor(cloud: FakeCloud) {
    this.#cloud = cloud;
  }

  async list(signal: AbortSignal): Promise<readonly ShelfImage[]> {
    return (await this.#cloud.listAll(signal)).images;
  }

  get(id: string, signal: AbortSignal): Promise<ShelfImage | undefined> {
    return this.#cloud.getImage(id, signal);
  }

  create({ tag, name }: NewShelfImage, signal: AbortSignal): Promise<ShelfImage> {
    return this.#cloud.createImage({ tag, name }, signal);
  }

  fill(id: string, { size, sha256 }: UploadOrder, signal: AbortSignal): Promise<void> {
    return this.#cloud.fillImage(id, { size, sha256 }, signal);
  }

  delete(id: string, signal: AbortSignal): Promise<void> {
    return this.#cloud.deleteImage(id, signal);
  }

  lagMs(): number {
    return this.#cloud.knobs.consistencyDelayMs;
  }
}
