import {
  ApiError,
  type Clock,
  type FoundPart,
  type ImageTag,
  imageMetadata,
  imageTagOf,
  isOfUpload,
  type Metadata,
  NoAnswer,
  OddAnswer,
  pieces,
  sleep,
} from "@nodeyard/driver";
import type { Google } from "../client/google.ts";
import { unlessMissing } from "../errors.ts";

/** Bytes of a part: a multiple of 256 KiB. One part is in memory. */
const PART = 8 << 20;
/** Tries of a part, and the pause between them, milliseconds. */
const TRIES = 6;
const AGAIN_MS = 2_000;
const HOST = "https://storage.googleapis.com";
const ROOT = "nodeyard/";
const NOTHING = new Uint8Array();

interface StoredObject {
  readonly name: string;
  readonly metadata?: Metadata;
}

/** The bucket through which files become images. Objects in it are of uploads under way, and carry the tag of theirs. */
export class Bucket {
  readonly #google: Google;
  readonly #clock: Clock;
  readonly #name: string;

  constructor(google: Google, clock: Clock, name: string) {
    this.#google = google;
    this.#clock = clock;
    this.#name = name;
  }

  /** Where Compute Engine finds an object. */
  sourceOf(object: string): string {
    return `${HOST}/${this.#name}/${object}`;
  }

  /** Whether the whole file of an upload is there: an object appears with its last part only. */
  async has(tag: ImageTag, signal: AbortSignal): Promise<boolean> {
    const found = await this.#maybe<StoredObject>("GET", objectOf(tag), signal);
    return isOfUpload(found?.metadata ?? {}, tag);
  }

  /** A resumable upload in parts. A part whose answer is lost is sent again from where the bucket has come to. */
  async put(tag: ImageTag, bytes: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
    const query = new URLSearchParams({ uploadType: "resumable", name: objectOf(tag) });
    const url = `${this.#google.address(HOST)}/upload/storage/v1/b/${this.#name}/o?${query}`;
    const body = JSON.stringify({ contentType: "application/gzip", metadata: imageMetadata(tag) });
    const { headers } = await this.#google.raw("storage.POST.upload", { method: "POST", url, body }, signal);
    const session = headers.location ?? "";
    // The token goes where the answer says.
    const to = URL.canParse(session) ? new URL(session).origin : "nowhere";
    if (![HOST, this.#google.address(HOST)].some((one) => new URL(one).origin === to))
      throw new OddAnswer(`bucket ${this.#name}: an upload leads to ${to}, and not to Google's storage`);
    let begin = 0;
    let held: Uint8Array | undefined;
    const send = async (part: Uint8Array, isLast: boolean) => {
      await this.#part(session, part, begin, isLast, signal);
      begin += part.byteLength;
    };
    // The last part says how long the whole is, so each waits for the next.
    for await (const { bytes: part } of pieces(bytes, PART)) {
      if (held !== undefined) await send(held, false);
      held = part;
    }
    if (held !== undefined) await send(held, true);
  }

  /** Of a part the bucket may take less than all, also when it says nothing of a fault. */
  async #part(
    url: string,
    part: Uint8Array,
    begin: number,
    isLast: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const end = begin + part.byteLength;
    const total = isLast ? end : "*";
    const put = async (range: string, bytes: Uint8Array) => {
      const headers = {
        "content-range": `bytes ${range}/${total}`,
        "content-length": String(bytes.byteLength),
      };
      const unsent = { method: "PUT", url, headers, body: bytes.byteLength > 0 ? once(bytes) : "" } as const;
      const { status, headers: said } = await this.#google.raw("storage.PUT.upload", unsent, signal);
      if (status !== 308) return end;
      const [, last] = /-(\d+)$/.exec(said.range ?? "") ?? [];
      const now = last === undefined ? 0 : Number(last) + 1;
      // 308 says that something is missing; and what came before is not in memory any more.
      if (now < begin || now > end || (isLast && now === end))
        throw new OddAnswer(`bucket ${this.#name} has ${now} bytes of an upload, after ${begin} of ${total}`);
      return now;
    };
    for (let taken = begin, tries = 1; taken < end; ) {
      let now: number;
      try {
        now = await put(`${taken}-${end - 1}`, part.subarray(taken - begin));
      } catch (error) {
        const isPassing = error instanceof NoAnswer || (error instanceof ApiError && error.status >= 500);
        if (!isPassing || tries >= TRIES) throw error;
        await sleep(this.#clock, AGAIN_MS, signal);
        now = await put("*", NOTHING);
      }
      if (now <= taken && tries >= TRIES)
        throw new OddAnswer(`bucket ${this.#name} takes no part of an upload`);
      tries = now > taken ? 1 : tries + 1;
      taken = now;
    }
  }

  delete(object: string, signal: AbortSignal): Promise<unknown> {
    return this.#maybe("DELETE", object, signal);
  }

  /** Objects of uploads, also of other providers and installations. */
  async list(signal: AbortSignal): Promise<readonly FoundPart[]> {
    const path = `/storage/v1/b/${this.#name}/o`;
    type Page = { readonly items?: readonly StoredObject[]; readonly nextPageToken?: string };
    const pages = await this.#google.pages(path, (next) =>
      this.#google.storage<Page>({ method: "GET", path, query: { prefix: ROOT, ...next } }, signal),
    );
    return pages
      .flatMap(({ items = [] }) => items)
      .map(({ name, metadata = {} }) => ({ id: name, tag: null, imageTag: imageTagOf(metadata) }));
  }

  #maybe<T>(method: "GET" | "DELETE", object: string, signal: AbortSignal): Promise<T | undefined> {
    const path = `/storage/v1/b/${this.#name}/o/${encodeURIComponent(object)}`;
    return unlessMissing(this.#google.storage<T>({ method, path }, signal), "No such object");
  }
}

/** The object of an upload. */
export function objectOf({ installation, provider, buildId, uploadId }: ImageTag): string {
  return `${ROOT}${[installation, provider, buildId, uploadId].map(encodeURIComponent).join("/")}.tar.gz`;
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  yield bytes;
}
