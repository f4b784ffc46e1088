import {
  allPages,
  inParallel,
  OddAnswer,
  type OpenFile,
  pieces,
  streamed,
  type UploadOrder,
} from "@nodeyard/driver";
import { unlessMissing } from "./errors.ts";
import type { Ibm } from "./ibm.ts";

/** Bytes of a part, of which object storage takes 10,000, and parts at once. */
const PART = 16 << 20;
const PARALLEL = 3;

type Query = Readonly<Record<string, string>>;

/** The bucket through which files become images, in the dialect of S3. What is in it by our names is of uploads under way. */
export class Bucket {
  readonly #ibm: Ibm;
  readonly #url: string;
  readonly #name: string;

  constructor(
    ibm: Ibm,
    { endpoint, bucketName }: { readonly endpoint: string; readonly bucketName: string },
  ) {
    this.#ibm = ibm;
    this.#url = `${endpoint.replace(/\/+$/, "")}/${bucketName}`;
    this.#name = bucketName;
  }

  /** Where VPC finds an object: the location without its class, as in `us-south-smart`. */
  async hrefOf(key: string, signal: AbortSignal): Promise<string> {
    const [location = ""] = valuesIn(
      await this.#read("", { location: "" }, "LocationConstraint", signal),
      "LocationConstraint",
    );
    return `cos://${location.replace(/-[^-]+$/, "")}/${this.#name}/${key}`;
  }

  /** Keys of whole objects. */
  async keys(prefix: string, signal: AbortSignal): Promise<readonly string[]> {
    const pages = await allPages(
      `list of bucket ${this.#name}`,
      (token) => {
        const next = token === undefined ? {} : { "continuation-token": token };
        return this.#read("", { "list-type": "2", prefix, ...next }, "ListBucketResult", signal);
      },
      (page) => valuesIn(page, "NextContinuationToken")[0],
    );
    return pages.flatMap((page) => valuesIn(page, "Key"));
  }

  /** Objects of which parts have arrived, with the ids of their uploads. */
  async begun(
    prefix: string,
    signal: AbortSignal,
  ): Promise<readonly (readonly [key: string, upload: string])[]> {
    const page = await this.#read("", { uploads: "", prefix }, "ListMultipartUploadsResult", signal);
    const uploads = valuesIn(page, "UploadId");
    return valuesIn(page, "Key").map((key, at) => [key, uploads[at]!] as const);
  }

  /** Sends a file in parts, those that are not there yet, and yields how many there are without a gap. The object appears with the last one. */
  async *put(key: string, order: UploadOrder, open: OpenFile, signal: AbortSignal): AsyncGenerator<number> {
    const [[, upload = await this.#begin(key, signal)] = []] = await this.begun(key, signal);
    const marks = await this.#parts(key, upload, signal);
    yield* inParallel(pieces(streamed(open, order), PART), PARALLEL, async ({ index, bytes }) => {
      const query = { partNumber: String(index + 1), uploadId: upload };
      if (!marks.has(index + 1))
        marks.set(index + 1, (await this.#call("PUT", key, query, signal, bytes)).mark);
    });
    const parts = [...marks].sort(([a], [b]) => a - b);
    const list = parts.map(
      ([number, mark]) => `<Part><PartNumber>${number}</PartNumber><ETag>${mark}</ETag></Part>`,
    );
    const body = `<CompleteMultipartUpload>${list.join("")}</CompleteMultipartUpload>`;
    const { text } = await this.#call("POST", key, { uploadId: upload }, signal, body);
    // It may begin with success, and fail when the parts are put together.
    if (!text.includes("<CompleteMultipartUploadResult"))
      throw new OddAnswer(`bucket ${this.#name} has not completed ${key}`);
  }

  /** Removes an object and its parts. */
  async delete(key: string, signal: AbortSignal): Promise<void> {
    for (const [of, uploadId] of await this.begun(key, signal))
      if (of === key) await unlessMissing(this.#call("DELETE", key, { uploadId }, signal), "upload");
    await unlessMissing(this.#call("DELETE", key, {}, signal), "object");
  }

  async #begin(key: string, signal: AbortSignal): Promise<string> {
    const [upload] = valuesIn((await this.#call("POST", key, { uploads: "" }, signal)).text, "UploadId");
    if (upload === undefined) throw new OddAnswer(`bucket ${this.#name} began an upload without an id`);
    return upload;
  }

  /** Marks of the parts that have arrived whole, by number. */
  async #parts(key: string, uploadId: string, signal: AbortSignal): Promise<Map<number, string>> {
    const pages = await allPages(
      `list of parts of ${key}`,
      (marker = "0") =>
        this.#read(key, { uploadId, "part-number-marker": marker }, "ListPartsResult", signal),
      (page) => (/<IsTruncated>true</.test(page) ? valuesIn(page, "PartNumber").at(-1) : undefined),
    );
    const all = (name: string) => pages.flatMap((page) => valuesIn(page, name));
    const marks = all("ETag");
    return new Map(all("PartNumber").map((number, at) => [Number(number), marks[at]!]));
  }

  /** The text of an answer that has an element: without it, it would look like a bucket of nothing. */
  async #read(key: string, query: Query, element: string, signal: AbortSignal): Promise<string> {
    const { text } = await this.#call("GET", key, query, signal);
    if (text.includes(`<${element}`)) return text;
    throw new OddAnswer(`bucket ${this.#name} answered without ${element}`);
  }

  #call(
    method: "GET" | "POST" | "PUT" | "DELETE",
    key: string,
    query: Query,
    signal: AbortSignal,
    body?: string | Uint8Array,
  ) {
    return this.#ibm.object(method, key === "" ? this.#url : `${this.#url}/${key}`, query, signal, body);
  }
}

/** The texts of all elements of a name. */
function valuesIn(xml: string, name: string): readonly string[] {
  const found = xml.matchAll(new RegExp(`<${name}[^>]*>([^<]*)</${name}>`, "g"));
  return [...found].map(([, text = ""]) => text.replaceAll("&quot;", '"').replaceAll("&amp;", "&"));
}
