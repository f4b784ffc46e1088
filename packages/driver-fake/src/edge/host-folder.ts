import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ImageFolder, StoredImage } from "../images/folder.ts";

/** `<id>.json` says what `<id>.image` is, and whether that is whole. */
export class HostFolder implements ImageFolder {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async list(): Promise<readonly StoredImage[]> {
    const names = await readdir(this.#path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return [];
      throw error;
    });
    return Promise.all(
      names
        .filter((name) => name.endsWith(".json"))
        .map(async (name) => JSON.parse(await readFile(join(this.#path, name), "utf8")) as StoredImage),
    );
  }

  async put(image: StoredImage): Promise<void> {
    await mkdir(this.#path, { recursive: true });
    const facts = await open(this.#file(image.id, "new"), "w");
    await facts.writeFile(JSON.stringify(image));
    await facts.sync();
    await facts.close();
    await rename(this.#file(image.id, "new"), this.#file(image.id, "json"));
  }

  async copy(
    id: string,
    file: string,
    progress: (sent: number) => void,
    signal: AbortSignal,
  ): Promise<string> {
    const hash = createHash("sha256");
    const copy = await open(this.#file(id, "image"), "w");
    try {
      let sent = 0;
      for await (const bytes of createReadStream(file, { signal, highWaterMark: 1 << 20 })) {
        hash.update(bytes as Uint8Array);
        await copy.writeFile(bytes as Uint8Array);
        sent += (bytes as Uint8Array).length;
        progress(sent);
      }
      await copy.sync();
    } finally {
      await copy.close();
    }
    return hash.digest("hex");
  }

  async remove(id: string): Promise<void> {
    for (const kind of ["json", "image", "new"]) await rm(this.#file(id, kind), { force: true });
  }

  #file(id: string, kind: string): string {
    return join(this.#path, `${id}.${kind}`);
  }
}
