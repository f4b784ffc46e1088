import {
  type CloudPart,
  type ImageTag,
  imageMetadata,
  imageTagOf,
  isOfUpload,
  type Metadata,
  OddAnswer,
  pieces,
} from "@nodeyard/driver";
import type { Google } from "../client/google.ts";
import { unlessMissing } from "../errors.ts";

/** Bytes of a part: a multiple of 256 KiB. Two parts are in memory. */
const PART = 8 << 20;
/** Answers in a row by which the bucket may take nothing of a part. */
const STALLS = 5;
const HOST = "https://storage.googleapis.com";
const ROOT = "nodeyard/";

interface StoredObject {
  readonly name: string;
  readonly metadata?: Metadata;
}

/** The bucket through which files become images. Objects in it are of uploads under way, and carry the tag of theirs. */
export function bucketOf(google: Google, bucket: string) {
  const objects = `/storage/v1/b/${bucket}/o`;
  const uploads = `/upload${objects}`;
  const call = <T>(method: "GET" | "DELETE", object: string, signal: AbortSignal) => {
    const path = `${objects}/${encodeURIComponent(object)}`;
    return unlessMissing(google.storage<T>({ method, path }, signal), "No such object");
  };

  /**
   * Resolves to the end of the part. The bucket may take less of it than all, also without a fault; what it has it ignores when it comes again,
   * as after a lost answer ("Resumable uploads" in the guide of Cloud Storage).
   */
  async function sendPart(
    url: string,
    part: Uint8Array,
    begin: number,
    isLast: boolean,
    signal: AbortSignal,
  ): Promise<number> {
    const end = begin + part.byteLength;
    for (let taken = begin, stalls = 0; taken < end; ) {
      const headers = { "content-range": `bytes ${taken}-${end - 1}/${isLast ? end : "*"}` };
      const call = { method: "PUT", path: uploads, headers, body: part.subarray(taken - begin) } as const;
      const { status, headers: said } = await google.raw(url, call, signal);
      const isOpen = status === 308;
      const [, last = "-1"] = /-(\d+)$/.exec(said.range ?? "") ?? [];
      const now = isOpen ? Number(last) + 1 : end;
      // 308 says that something is missing; and what came before is not in memory any more.
      if (now < begin || now > end || (isOpen && isLast && now === end))
        throw new OddAnswer(
          `bucket ${bucket} has ${now} bytes of an upload, after ${taken} of a part to ${end}`,
        );
      stalls = now > taken ? 0 : stalls + 1;
      if (stalls > STALLS) throw new OddAnswer(`bucket ${bucket} takes no part of an upload`);
      taken = now;
    }
    return end;
  }

  return {
    /** Where Compute Engine finds the file of an upload. */
    sourceOf: (tag: ImageTag) => `${HOST}/${bucket}/${objectOf(tag)}`,

    /** Whether the whole file of an upload is there: an object appears with its last part only. */
    async has(tag: ImageTag, signal: AbortSignal): Promise<boolean> {
      const found = await call<StoredObject>("GET", objectOf(tag), signal);
      return isOfUpload(found?.metadata ?? {}, tag);
    },

    /** A resumable upload in parts. */
    async put(tag: ImageTag, bytes: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
      const query = { uploadType: "resumable", name: objectOf(tag) };
      const body = { contentType: "application/gzip", metadata: imageMetadata(tag) };
      const call = { method: "POST", path: uploads, query, body } as const;
      const { headers } = await google.raw(`${google.address(HOST)}${uploads}`, call, signal);
      const session = headers.location ?? "";
      // The token goes where the answer says.
      const to = URL.canParse(session) ? new URL(session).origin : "nowhere";
      if (![HOST, google.address(HOST)].some((one) => new URL(one).origin === to))
        throw new OddAnswer(`bucket ${bucket}: an upload leads to ${to}, and not to Google's storage`);
      let begin = 0;
      let held: Uint8Array | undefined;
      // The last part says how long the whole is, so each waits for the next.
      for await (const { bytes: part } of pieces(bytes, PART)) {
        if (held !== undefined) begin = await sendPart(session, held, begin, false, signal);
        held = part;
      }
      if (held !== undefined) await sendPart(session, held, begin, true, signal);
    },

    delete: (tag: ImageTag, signal: AbortSignal) => call("DELETE", objectOf(tag), signal),

    /** Objects of uploads, also of other providers and installations. */
    part: {
      async list(signal) {
        type Page = { readonly items?: readonly StoredObject[]; readonly nextPageToken?: string };
        const pages = await google.pages(objects, (next) =>
          google.storage<Page>({ method: "GET", path: objects, query: { prefix: ROOT, ...next } }, signal),
        );
        return pages
          .flatMap(({ items = [] }) => items)
          .map(({ name, metadata = {} }) => ({ id: name, tag: null, imageTag: imageTagOf(metadata) }));
      },
      delete: async (object, signal) => void (await call("DELETE", object, signal)),
    } satisfies CloudPart,
  };
}

function objectOf({ installation, provider, buildId, uploadId }: ImageTag): string {
  return `${ROOT}${[installation, provider, buildId, uploadId].map(encodeURIComponent).join("/")}.tar.gz`;
}
