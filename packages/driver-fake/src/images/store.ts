import {
  asDriverError,
  DriverError,
  type ExternalId,
  type ImageStore,
  type ImageTag,
  type Step,
  type StepContext,
  type UploadOrder,
} from "@nodeyard/driver";
import type { Random } from "@nodeyard/runtime";
import { sameImage } from "../cloud/images.ts";
import type { ImageFolder, StoredImage } from "./folder.ts";

const CALL_MS = 60_000;
const UPLOAD_MS = 3_600_000;

/** Images of a fake cloud: real copies in a folder, found by their tag. */
export class FolderStore implements ImageStore {
  readonly formats: readonly string[];
  readonly #folder: ImageFolder;
  readonly #random: Random;

  constructor(folder: ImageFolder, formats: readonly string[], random: Random) {
    this.#folder = folder;
    this.formats = formats;
    this.#random = random;
  }

  async *upload(order: UploadOrder, { signal }: StepContext): AsyncGenerator<Step, ExternalId, void> {
    yield { step: "find", deadlineMs: CALL_MS };
    const known = (await this.#of(order.tag))[0];
    const id = known?.id ?? this.#random.uuid();
    yield { step: "upload", deadlineMs: UPLOAD_MS, save: { externalId: id } };
    if (known === undefined) {
      const image = { id, name: order.name, tag: order.tag, format: order.format, metadata: order.metadata };
      const sha256 = await this.#folder
        .put(image, order.file, order.progress, signal)
        .catch((error: unknown) => {
          throw asDriverError(error, "upload");
        });
      if (sha256 !== order.sha256) {
        await this.#folder.remove(id);
        throw new DriverError(
          "transient",
          `${order.file} arrived with sha256 ${sha256}, not ${order.sha256}`,
        );
      }
    }
    order.progress(order.size);
    return id;
  }

  async *remove(tag: ImageTag, _context: StepContext): AsyncGenerator<Step, void, void> {
    yield { step: "find", deadlineMs: CALL_MS };
    for (const { id } of await this.#of(tag)) {
      yield { step: "delete", deadlineMs: CALL_MS };
      await this.#folder.remove(id);
    }
  }

  async #of(tag: ImageTag): Promise<readonly StoredImage[]> {
    return (await this.#folder.list()).filter((image) => sameImage(image.tag, tag));
  }

  list(): Promise<readonly StoredImage[]> {
    return this.#folder.list();
  }

  /** Gone already: ends normally. */
  delete(id: string): Promise<void> {
    return this.#folder.remove(id);
  }
}
