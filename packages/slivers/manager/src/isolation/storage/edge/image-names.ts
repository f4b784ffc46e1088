import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ImageVersions } from "../../../core/image-trials.ts";
import { HALF, writeAtomic } from "../../edge/files.ts";

/** Resolved name: the digest of an image, and a value that changes when the source may have changed. */
export interface Noted {
  readonly digest: string;
  readonly from: string;
  /** Absent: new versions of this name are not tried. */
  readonly versions?: ImageVersions | undefined;
}

/** What names of images stood for last: a file for each. It saves reading a whole archive to find out whether an image is still wanted. */
export class ImageNames {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** A file that a crash left unfinished names nothing: else the image in it would be kept for ever. */
  async list(): Promise<string[]> {
    const names = await readdir(this.#folder).catch(() => []);
    return names.filter((name) => !name.endsWith(HALF));
  }

  async read(name: string): Promise<Noted | undefined> {
    const text = await this.#text(name);
    const [digest, from = "", versions] = text?.split("\n") ?? [];
    if (digest === undefined) return undefined;
    return { digest, from, ...(versions ? { versions: JSON.parse(versions) as ImageVersions } : {}) };
  }

  async write(name: string, { digest, from, versions }: Noted): Promise<void> {
    const text = `${digest}\n${from}\n${JSON.stringify(versions) ?? ""}\n`;
    // Each sliver that is made says it again, and a write waits for the disk.
    if ((await this.#text(name)) === text) return;
    await mkdir(this.#folder, { recursive: true });
    await writeAtomic(join(this.#folder, name), text);
  }

  #text(name: string): Promise<string | undefined> {
    return readFile(join(this.#folder, name), "utf8").catch(() => undefined);
  }

  async remove(name: string): Promise<void> {
    await rm(join(this.#folder, name), { force: true });
  }

  async removeAll(): Promise<void> {
    for (const name of await this.list()) await this.remove(name);
    await rm(this.#folder, { recursive: true, force: true });
  }
}
