import { z } from "zod";
import type { Service } from "../client/index.ts";

/** Custom properties stand beside the known ones (Image API v2), so all of it is kept. */
const imageSchema = z.looseObject({
  id: z.string(),
  name: z.string().nullish(),
  status: z.string(),
  size: z.number().nullish(),
  checksum: z.string().nullish(),
  os_hash_algo: z.string().nullish(),
  os_hash_value: z.string().nullish(),
});
export type Image = z.infer<typeof imageSchema>;

/** The calls to glance that we make. */
export class Images {
  readonly #glance: Service;
  readonly #project: (signal: AbortSignal) => Promise<string | null>;

  constructor(glance: Service, project: (signal: AbortSignal) => Promise<string | null>) {
    this.#glance = glance;
    this.#project = project;
  }

  /** As `list`, without what others share with the project, or what an administrator sees of all projects. */
  async own(filters: Readonly<Record<string, string>>, signal: AbortSignal): Promise<readonly Image[]> {
    const project = await this.#project(signal);
    return this.list(project === null ? filters : { owner: project, ...filters }, signal);
  }

  /** Those that `filters` fit; a property is a filter as well. */
  list(filters: Readonly<Record<string, string>>, signal: AbortSignal): Promise<readonly Image[]> {
    return this.#glance.list("images", imageSchema, "/images", signal, { query: filters });
  }

  /** Undefined: it is not there. */
  get(id: string, signal: AbortSignal): Promise<Image | undefined> {
    return this.#glance.maybe(imageSchema, "GET", `/images/${encodeURIComponent(id)}`, signal);
  }

  create(image: object, signal: AbortSignal): Promise<Image> {
    return this.#glance.json(imageSchema, "POST", "/images", signal, { json: image });
  }

  /** Streams the file's bytes; `ms` is for all of it. */
  async upload(id: string, bytes: AsyncIterable<Uint8Array>, size: number, ms: number, signal: AbortSignal) {
    const headers = { "content-type": "application/octet-stream", "content-length": String(size) };
    await this.#glance.send("PUT", `/images/${encodeURIComponent(id)}/file`, signal, {
      body: bytes,
      headers,
      tryMs: ms,
    });
  }

  async delete(id: string, signal: AbortSignal): Promise<void> {
    await this.#glance.gone(`/images/${encodeURIComponent(id)}`, signal);
  }
}
