import { rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, DriverError, syncPath, type UploadOrder } from "@nodeyard/driver";
import { folders, readFacts, sha256 } from "./files.ts";
import { copied, inspected, placed } from "./image-files.ts";
import type { Account } from "./tools.ts";

/** An image on this host, ready to be linked to a machine. */
export interface StoredImage {
  readonly file: string;
  /** Identifies the content. */
  readonly id: string;
  readonly format: string;
  /** Bytes. */
  readonly virtualSize: number;
}

/** Content of `image.json`. `virtualSize`: bytes. */
interface Entry {
  readonly v: 1;
  readonly format: string;
  readonly virtualSize: number;
  readonly sha256: string;
}

/** Uploaded images, one folder for each tag: `image`, and `image.json` with its facts. */
export class Uploads {
  readonly #root: string;
  readonly #account: Account;
  readonly #clock: Clock;

  constructor(root: string, account: Account, clock: Clock) {
    this.#root = root;
    this.#account = account;
    this.#clock = clock;
  }

  /** Names of the uploads, incomplete ones included. */
  async names(): Promise<readonly string[]> {
    const all = await folders(this.#root);
    return [...new Set(all.map((name) => name.replace(/^\./, "")))];
  }

  /** Ids of the contents of all complete uploads. */
  async ids(): Promise<readonly string[]> {
    const all = await Promise.all((await this.names()).map((name) => this.get(name)));
    return all.flatMap((image) => (image === undefined ? [] : [image.id]));
  }

  /** A complete upload; undefined for one that is missing or not complete: its facts are written last. */
  async get(name: string): Promise<StoredImage | undefined> {
    const folder = join(this.#root, name);
    const entry = await readFacts<Entry>(join(folder, "image.json"));
    if (entry === undefined) return undefined;
    const { format, virtualSize, sha256: id } = entry;
    return { file: join(folder, "image"), id, format, virtualSize };
  }

  /** Copies the file and checks the copy, so that what is stored is what the builder made. */
  async add(name: string, order: UploadOrder, signal: AbortSignal): Promise<void> {
    const { file, format } = order;
    // Only one process uploads for a tag. The draft has a fixed name, by which `remove` finds it.
    await placed(join(this.#root, name), join(this.#root, `.${name}`), async (draft) => {
      const image = join(draft, "image");
      await copied(file, image, this.#account, signal);
      const { size } = await stat(image);
      const sum = await sha256(image, signal, (bytes) => order.progress(bytes));
      if (sum !== order.sha256 || size !== order.size)
        throw new DriverError(
          "transient",
          `${file} arrived with sha256 ${sum} and ${size} bytes, not ${order.sha256} and ${order.size}`,
        );
      const ctx = { account: this.#account, clock: this.#clock, signal };
      const { virtualSize } = await inspected(image, format, file, ctx);
      const entry: Entry = { v: 1, format, virtualSize, sha256: sum };
      await writeFile(join(draft, "image.json"), JSON.stringify(entry), { flush: true });
      await syncPath(image);
    });
  }

  /** Removes an upload. Machines that boot from it keep the file by hard links. A missing upload is no error. */
  async remove(name: string): Promise<void> {
    for (const folder of [name, `.${name}`])
      await rm(join(this.#root, folder), { recursive: true, force: true });
  }
}
