import { DriverError, type UploadOrder } from "@nodeyard/driver";
import type { Random } from "@nodeyard/runtime";
import { sameImage } from "../cloud/images.ts";
import type { ImageFolder, StoredImage } from "./folder.ts";
import type { NewShelfImage, Shelf } from "./shelf.ts";

/** Real copies in a folder, which outlive the process. */
export class FolderShelf implements Shelf {
  readonly inCloud = false;
  readonly #folder: ImageFolder;
  readonly #random: Random;

  constructor(folder: ImageFolder, random: Random) {
    this.#folder = folder;
    this.#random = random;
  }

  list(): Promise<readonly StoredImage[]> {
    return this.#folder.list();
  }

  async get(id: string): Promise<StoredImage | undefined> {
    return (await this.#folder.list()).find((image) => image.id === id);
  }

  async create(image: NewShelfImage): Promise<StoredImage> {
    const known = (await this.#folder.list()).find(({ tag }) => sameImage(tag, image.tag));
    if (known !== undefined) return known;
    const { tag, name, format, metadata } = image;
    const made = { id: this.#random.uuid(), name, tag, format, metadata, whole: false };
    await this.#folder.put(made);
    return made;
  }

  async fill(id: string, order: UploadOrder, signal: AbortSignal): Promise<void> {
    const image = await this.get(id);
    if (image === undefined) throw new DriverError("not-found", `there is no image ${id}`);
    const sha256 = await this.#folder.copy(id, order.file, order.progress, signal);
    if (sha256 !== order.sha256)
      throw new DriverError("transient", `${order.file} arrived with sha256 ${sha256}, not ${order.sha256}`);
    await this.#folder.put({ ...image, whole: true });
  }

  delete(id: string): Promise<void> {
    return this.#folder.remove(id);
  }

  lagMs(): number {
    return 0;
  }
}
