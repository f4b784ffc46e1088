import { z } from "zod";
import type { Service } from "../client/index.ts";

/** Custom properties are on the same level as the standard ones (Image API v2), so unknown fields are kept. */
const imageSchema = z.looseObject({
  id: z.string(),
  name: z.string().nullish(),
  /** "queued" (no data yet), "saving", "active", "killed", ... (Image API v2, "Image statuses"). */
  status: z.string(),
  /** Bytes; null until the data is complete. The same goes for the checksums. */
  size: z.number().nullish(),
  /** MD5, in hexadecimal digits. */
  checksum: z.string().nullish(),
  /** Algorithm of `os_hash_value`, which the cloud chooses: "sha512" by default. */
  os_hash_algo: z.string().nullish(),
  os_hash_value: z.string().nullish(),
});
/** An image, with its properties as further fields. */
export type Image = z.infer<typeof imageSchema>;

/** The driver's calls to glance. */
export class Images {
  readonly #glance: Service;
  /** Id of the project; null when the token has none. */
  readonly #project: (signal: AbortSignal) => Promise<string | null>;

  constructor(glance: Service, project: (signal: AbortSignal) => Promise<string | null>) {
    this.#glance = glance;
    this.#project = project;
  }

  /** As `list`, without images that others share with the project, or that an administrator sees of other projects. */
  async own(filters: Readonly<Record<string, string>>, signal: AbortSignal): Promise<readonly Image[]> {
    const project = await this.#project(signal);
    return this.list(project === null ? filters : { owner: project, ...filters }, signal);
  }

  /** The images that match `filters`. Filters may be properties. */
  list(filters: Readonly<Record<string, string>>, signal: AbortSignal): Promise<readonly Image[]> {
    return this.#glance.list("images", imageSchema, "/images", signal, { query: filters });
  }

  /** Undefined when the image does not exist. */
  get(id: string, signal: AbortSignal): Promise<Image | undefined> {
    return this.#glance.maybe(imageSchema, "GET", `/images/${encodeURIComponent(id)}`, signal);
  }

  /** Creates an image without data. Not repeated after a lost answer: the caller finds it by its properties. */
  create(image: object, signal: AbortSignal): Promise<Image> {
    return this.#glance.json(imageSchema, "POST", "/images", signal, { json: image });
  }

  /**
   * Streams the file to glance; `ms` is the time limit of the whole upload. Never repeated: a stream cannot be sent again, and
   * glance accepts data only once.
   */
  async upload(id: string, bytes: AsyncIterable<Uint8Array>, size: number, ms: number, signal: AbortSignal) {
    const headers = { "content-type": "application/octet-stream", "content-length": String(size) };
    await this.#glance.send("PUT", `/images/${encodeURIComponent(id)}/file`, signal, {
      body: bytes,
      headers,
      tryMs: ms,
    });
  }

  /** An image that does not exist is no error. */
  async delete(id: string, signal: AbortSignal): Promise<void> {
    await this.#glance.gone(`/images/${encodeURIComponent(id)}`, signal);
  }
}
