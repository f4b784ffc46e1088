import querystring from "node:querystring";
import type { CloudPart } from "./cloud-provider.ts";
import type { UploadOrder } from "./offers.ts";
import { type ImageTag, imageMetadata, imageTagOf } from "./tags.ts";
import { inParallel, type OpenFile, pieces, streamed } from "./transfer.ts";

/** Bytes of a part, and parts of an object: S3 takes 10,000, each of at least 5 MiB. */
const LEAST_PART = 16 << 20;
const MOST_PARTS = 10_000;
/** Parts in memory at the same time. */
const PARALLEL = 4;

/** The calls of a bucket that takes files in parts, in the way of S3: an object appears when its last part has arrived and it is completed. */
export interface PartedStore<Mark> {
  /** Keys of the objects of ours that begin so. */
  whole(prefix: string, signal: AbortSignal): Promise<readonly string[]>;
  /** Keys that begin so, of which parts have arrived, with the ids of their uploads. */
  begun(prefix: string, signal: AbortSignal): Promise<readonly (readonly [key: string, upload: string])[]>;
  /** Begins an upload, and resolves to its id. */
  begin(key: string, order: UploadOrder, signal: AbortSignal): Promise<string>;
  /** What the bucket calls the content of the parts of an upload that have arrived whole, by their numbers from 1. */
  parts(key: string, upload: string, signal: AbortSignal): Promise<ReadonlyMap<number, Mark>>;
  /** Sends a part, and resolves to its mark. A repetition replaces the part. */
  put(key: string, upload: string, number: number, bytes: Uint8Array, signal: AbortSignal): Promise<Mark>;
  /** Makes the object. The parts are in order, without which S3 refuses them. */
  complete(
    key: string,
    upload: string,
    parts: readonly (readonly [number, Mark])[],
    signal: AbortSignal,
  ): Promise<void>;
  /** Deletes an object, or the parts of an upload, which cost money as well. One that is not there is no error. */
  delete(key: string, upload: string | undefined, signal: AbortSignal): Promise<void>;
}

/**
 * Files of uploads in a bucket, by their keys. A file is sent in parts; an attempt after a crash sends those that are missing. `prefix`: of the
 * keys of a provider's uploads; `tagOf`: the tag in a key.
 */
export function partedFiles<Mark>(
  store: PartedStore<Mark>,
  openFile: OpenFile,
  { prefix, tagOf }: { readonly prefix: string; readonly tagOf: (key: string) => ImageTag | null },
) {
  const uploadsOf = async (key: string, signal: AbortSignal) =>
    // The prefix may also match longer keys.
    (await store.begun(key, signal)).flatMap(([of, upload]) => (of === key ? upload : []));

  /** Deletes an object and its parts. */
  async function remove(key: string, signal: AbortSignal): Promise<void> {
    for (const upload of await uploadsOf(key, signal)) await store.delete(key, upload, signal);
    await store.delete(key, undefined, signal);
  }

  /**
   * Yields how many parts have arrived without a gap: a record with such a count says that the upload can go on. `made`: other bytes, which are
   * made of the file's at each attempt, and may differ then, so that none of an earlier one are kept.
   */
  async function* put(
    key: string,
    order: UploadOrder,
    signal: AbortSignal,
    made?: AsyncIterable<Uint8Array>,
  ): AsyncGenerator<number> {
    if (made !== undefined) await remove(key, signal);
    const [begun] = await uploadsOf(key, signal);
    const upload = begun ?? (await store.begin(key, order, signal));
    const marks = new Map(begun === undefined ? [] : await store.parts(key, upload, signal));
    // Larger only where the most parts of the least size do not hold the file, because several are in memory.
    const length = Math.max(LEAST_PART, Math.ceil(order.size / MOST_PARTS));
    const all = pieces(made ?? streamed(openFile, order), length);
    yield* inParallel(all, PARALLEL, async ({ index, bytes }) => {
      const number = index + 1;
      if (!marks.has(number)) marks.set(number, await store.put(key, upload, number, bytes, signal));
    });
    const parts = [...marks].sort(([a], [b]) => a - b);
    await store.complete(key, upload, parts, signal);
  }

  /** Files of uploads, also those that are not complete. */
  const part: CloudPart = {
    async list(signal) {
      const begun = (await store.begun(prefix, signal)).map(([key]) => key);
      const keys = new Set([...(await store.whole(prefix, signal)), ...begun]);
      return [...keys].map((id) => ({ id, imageTag: tagOf(id) }));
    },
    delete: remove,
  };
  return {
    /** Whether the whole file is there. */
    has: async (key: string, signal: AbortSignal) => (await store.whole(key, signal)).includes(key),
    ...{ put, delete: remove, part },
  };
}

/** Start of the keys of all uploads in a bucket, which may have files of others. */
const ROOT = "nodeyard";

/**
 * Key of an upload's file in a bucket. The key contains the tag, so that a listing shows the owner without a call per object. Parts are
 * encoded, so a slash in a name does not split them.
 */
export function uploadKey({ image, buildId, uploadId, ...owner }: ImageTag): string {
  return uploadKeys(owner) + [image, buildId, uploadId].map(encodeURIComponent).join("/");
}

/** The prefix of all keys of one provider. */
export function uploadKeys({ installation, provider }: Pick<ImageTag, "installation" | "provider">): string {
  return `${[ROOT, installation, provider].map(encodeURIComponent).join("/")}/`;
}

/** The tag in a key; null for any other key. */
export function tagInKey(key: string): ImageTag | null {
  const [, installation = "", provider = "", image = "", buildId = "", uploadId = ""] = key
    .split("/")
    .map(querystring.unescape);
  const tag = { installation, provider, image, buildId, uploadId };
  return uploadKey(tag) === key ? imageTagOf(imageMetadata(tag)) : null;
}
