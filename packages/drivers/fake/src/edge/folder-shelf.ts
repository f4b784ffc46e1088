import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { DriverError, type ImageTag, sameImage } from "@nodeyard/driver";
import type { Shelf } from "../images.ts";

/** Content of `<id>.json`, which describes `<id>.image`. */
interface StoredImage {
  readonly id: string;
  readonly name: string;
  readonly tag: ImageTag;
  readonly format: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Whether the copy is complete and has the builder's checksum. */
  readonly whole: boolean;
}

/** Stores images as copies in a folder, which outlive the process. There is no lock: the builder uploads a tag in one process only. */
export function folderShelf(folder: string): Shelf {
  const file = (id: string, kind: string) => join(folder, `${id}.${kind}`);
  const get = async (id: string) => (await list(folder)).find((image) => image.id === id);
  // By the rename, a reader sees the old facts or the new ones. The copy is synced before its facts say that it is whole.
  const put = async (image: StoredImage) => {
    await mkdir(folder, { recursive: true });
    const facts = await open(file(image.id, "new"), "w");
    await facts.writeFile(JSON.stringify(image));
    await facts.sync();
    await facts.close();
    await rename(file(image.id, "new"), file(image.id, "json"));
  };
  return {
    inCloud: false,
    list: () => list(folder),
    get,
    idOf,
    async create({ tag, name, format, metadata }) {
      // The tag is the idempotency token: a repeated create finds the record of the first.
      const known = (await list(folder)).find((image) => sameImage(image.tag, tag));
      if (known !== undefined) return known;
      const made = { id: idOf(tag), name, tag, format, metadata, whole: false };
      await put(made);
      return made;
    },
    async fill(id, order, signal) {
      const image = await get(id);
      if (image === undefined) throw new DriverError("not-found", `there is no image ${id}`);
      const sha256 = await copied(order.file, file(id, "image"), order.progress, signal);
      // The record stays without data, so the next attempt copies the file again.
      if (sha256 !== order.sha256)
        throw new DriverError(
          "transient",
          `${order.file} arrived with sha256 ${sha256}, not ${order.sha256}`,
        );
      await put({ ...image, whole: true });
    },
    async delete(id) {
      // The facts go first: a deletion that is cut off leaves a file that no list shows, instead of an image without data. The tag leads
      // to that file when the deletion is repeated.
      for (const kind of ["json", "image", "new"]) await rm(file(id, kind), { force: true });
    },
    lagMs: () => 0,
  };
}

/** The id of a tag's image. It follows from the tag, so that files whose facts were not yet written, or are deleted, are found again. */
function idOf({ installation, provider, image, buildId, uploadId }: ImageTag): string {
  const key = JSON.stringify([installation, provider, image, buildId, uploadId]);
  return createHash("sha256").update(key).digest("hex").slice(0, 32);
}

/** The facts of all images; empty when the folder does not exist yet. */
async function list(folder: string): Promise<readonly StoredImage[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  const facts = names
    .filter((name) => name.endsWith(".json"))
    .map((name) => readFile(join(folder, name), "utf8"));
  return (await Promise.all(facts)).map((text) => JSON.parse(text) as StoredImage);
}

/** Copies the file and returns the sha256 of the copied bytes. */
async function copied(
  from: string,
  to: string,
  progress: (sent: number) => void,
  signal: AbortSignal,
): Promise<string> {
  const hash = createHash("sha256");
  const copy = await open(to, "w");
  try {
    let sent = 0;
    for await (const bytes of createReadStream(from, { signal, highWaterMark: 1 << 20 })) {
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
