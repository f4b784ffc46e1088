import { pipeline, Readable } from "node:stream";
import { createGzip } from "node:zlib";
import {
  type Clock,
  type CloudPart,
  hashOf,
  type ImageStore,
  type ImageTag,
  imageMetadata,
  imageSteps,
  imageTagOf,
  type OpenFile,
  partedFiles,
  streamed,
  tagInKey,
  tarEnd,
  tarHeader,
  type UploadOrder,
  uploadKey,
  uploadKeys,
} from "@nodeyard/driver";
import type { Google, Operation } from "../client/google.ts";
import type { GceProviderOwn } from "../config.ts";
import { operationError } from "../errors.ts";
import { labelsOf, marksIn } from "../tags.ts";

/** An image, as far as the driver reads it. */
interface Image {
  readonly name: string;
  readonly status?: string;
  readonly description?: string;
}

interface StoreParts {
  readonly google: Google;
  readonly clock: Clock;
  readonly openFile: OpenFile;
  readonly own: GceProviderOwn;
  /** Whose uploads they are. */
  readonly owner: Pick<ImageTag, "installation" | "provider">;
}

/** Compute Engine takes disks of whole GiB. */
const GIB = 1 << 30;
/** How the keys of files end. */
const ARCHIVE = ".tar.gz";

/** Images of the project, by way of the bucket, and what of them is left over. Undefined: the provider has no bucket. */
export function imagesOf({ google, clock, openFile, own, owner }: StoreParts): {
  readonly store?: ImageStore;
  readonly parts: Readonly<Record<string, CloudPart>>;
} {
  const root = `projects/${google.project}/`;
  const idOf = ({ name }: Pick<Image, "name">) => `${root}global/images/${name}`;
  const pathOf = (id: string) => `/${id.slice(root.length)}`;
  const read = (id: string, signal: AbortSignal) =>
    google.maybe<Image>({ method: "GET", path: pathOf(id) }, signal);
  const image: CloudPart = {
    async list(signal) {
      const all = await google.list<Image>("/global/images", signal);
      return all.map((one) => ({ id: idOf(one), imageTag: imageTagOf(marksIn(one.description)) }));
    },
    async delete(id, signal) {
      if (!id.startsWith(root)) return;
      const operation = await google.maybe<Operation>({ method: "DELETE", path: pathOf(id) }, signal);
      if (operation !== undefined) await google.ended(operation, signal);
    },
  };
  if (own.bucket === null) return { parts: { image } };
  const bucket = google.bucket(own.bucket);
  const keyOf = (tag: ImageTag) => `${uploadKey(tag)}${ARCHIVE}`;
  const tagOf = (key: string) => (key.endsWith(ARCHIVE) ? tagInKey(key.slice(0, -ARCHIVE.length)) : null);
  const files = partedFiles(bucket.store, openFile, { prefix: uploadKeys(owner), tagOf });
  const store = imageSteps<Image>({
    ...{ clock, idOf, read, formats: ["raw"], uploadMs: own.imageUploadTimeoutMs },
    metadataOf: ({ description }) => marksIn(description),
    find: async (tag, signal) => [await read(idOf({ name: nameOf(tag) }), signal)],
    stateOf: ({ status = "" }) =>
      status === "READY" ? "ready" : status === "PENDING" ? "busy" : `is ${status}`,
    create: async ({ tag }) => idOf({ name: nameOf(tag) }),
    async *send(_, order, __, signal) {
      const { tag, size } = order;
      const key = keyOf(tag);
      if (!(await files.has(key, signal)))
        yield* files.put(key, order, signal, diskArchive(streamed(openFile, order), size));
      const body = insertBody(order, bucket.urlOf(key), own.families.get(tag.image) ?? null);
      const call = { method: "POST", path: "/global/images", body } as const;
      const { error } = await google.ended(await google.compute<Operation>(call, signal), signal);
      const [fault] = error?.errors ?? [];
      if (fault !== undefined) throw operationError(fault, `image ${body.name}`);
    },
    delete: image.delete,
    clean: (tag, signal) => files.delete(keyOf(tag), signal),
  });
  return { store, parts: { image, object: files.part } };
}

/** Name of an upload's image: the same at each attempt, so that there are never two. */
function nameOf(tag: ImageTag): string {
  const hash = hashOf(imageMetadata(tag));
  const image = tag.image
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replace(/^[^a-z]+/, "");
  return `${(image || "image").slice(0, 38)}-${tag.uploadId}-${hash.slice(0, 12)}`;
}

function insertBody({ tag, metadata, name }: UploadOrder, source: string, family: string | null) {
  const marks = imageMetadata(tag);
  return {
    name: nameOf(tag),
    description: JSON.stringify({ ...metadata, name, ...marks }),
    labels: labelsOf({ ...marks, ...metadata }),
    ...(family !== null && { family }),
    rawDisk: { source, containerType: "TAR" },
  };
}

/**
 * A raw disk as Compute Engine takes it: `disk.raw` in a tar archive of the older GNU format, compressed (Compute Engine, "Create an image from
 * a raw disk"). A disk that is not of whole GiB ends with a hole, which the sparse form of that format writes in no bytes.
 */
function diskArchive(bytes: AsyncIterable<Uint8Array>, size: number): AsyncIterable<Uint8Array> {
  async function* archive() {
    yield tarHeader("disk.raw", size, Math.ceil(size / GIB) * GIB);
    yield* bytes;
    yield tarEnd(size);
  }
  // An error of the file ends the compressed stream with it, and so whoever reads that.
  return pipeline(Readable.from(archive()), createGzip(), () => {});
}
