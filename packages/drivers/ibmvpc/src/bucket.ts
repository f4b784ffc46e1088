import { OddAnswer, type OpenFile, pieces, streamed, type UploadOrder } from "@nodeyard/driver";
import { unlessMissing } from "./errors.ts";
import type { Ibm } from "./ibm.ts";

/** Bytes of a part; object storage takes 10,000 of them. Two are in memory. */
const PART = 16 << 20;
/** Of a list of objects at most. */
const MOST_PAGES = 1_000;

/** What has the upload's parts, until the last has arrived. */
interface Begun {
  readonly key: string;
  readonly upload: string;
}

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
    const { text } = await this.#call("GET", "", { location: "" }, signal);
    const [location] = valuesOf(text, "LocationConstraint");
    if (location === undefined) throw new OddAnswer(`bucket ${this.#name} has no location`);
    return `cos://${location.replace(/-[^-]+$/, "")}/${this.#name}/${key}`;
  }

  /** Keys of whole objects. */
  async keys(prefix: string, signal: AbortSignal): Promise<readonly string[]> {
    const all: string[] = [];
    for (let next = {}, pages = 0; pages < MOST_PAGES; pages++) {
      const { text } = await this.#call("GET", "", { "list-type": "2", prefix, ...next }, signal);
      if (!text.includes("<ListBucketResult"))
        throw new OddAnswer(`bucket ${this.#name} was listed without a list`);
      all.push(...valuesOf(text, "Key"));
      const [token] = valuesOf(text, "NextContinuationToken");
      if (token === undefined) return all;
      next = { "continuation-token": token };
    }
    throw new OddAnswer(`the list of bucket ${this.#name} does not end`);
  }

  /** Objects of which parts have arrived. */
  async begun(prefix: string, signal: AbortSignal): Promise<readonly Begun[]> {
    const { text } = await this.#call("GET", "", { uploads: "", prefix }, signal);
    if (!text.includes("<ListMultipartUploadsResult"))
      throw new OddAnswer(`bucket ${this.#name} was listed without a list`);
    const uploads = valuesOf(text, "UploadId");
    return valuesOf(text, "Key").map((key, index) => ({ key, upload: uploads[index]! }));
  }

  /** Sends a file in parts, those that are not there yet, and yields how many there are without a gap. The object appears with the last one. */
  async *put(key: string, order: UploadOrder, open: OpenFile, signal: AbortSignal): AsyncGenerator<number> {
    const [found] = await this.begun(key, signal);
    const upload = found?.upload ?? (await this.#begin(key, signal));
    const marks = found === undefined ? new Map<number, string>() : await this.#parts(key, upload, signal);
    for await (const { index, bytes } of pieces(streamed(open, order), PART)) {
      const number = index + 1;
      if (!marks.has(number)) {
        const query = { partNumber: String(number), uploadId: upload };
        marks.set(number, (await this.#call("PUT", key, query, signal, bytes)).mark);
      }
      yield number;
    }
    const parts = [...marks].sort(([a], [b]) => a - b);
    const list = parts.map(
      ([number, mark]) => `<Part><PartNumber>${number}</PartNumber><ETag>${mark}</ETag></Part>`,
    );
    const body = `<CompleteMultipartUpload>${list.join("")}</CompleteMultipartUpload>`;
    await this.#call("POST", key, { uploadId: upload }, signal, body);
  }

  /** Removes an object and its parts. */
  async delete(key: string, signal: AbortSignal): Promise<void> {
    for (const { key: of, upload } of await this.begun(key, signal))
      if (of === key) await unlessMissing(this.#call("DELETE", key, { uploadId: upload }, signal), "upload");
    await unlessMissing(this.#call("DELETE", key, {}, signal), "object");
  }

  async #begin(key: string, signal: AbortSignal): Promise<string> {
    const [upload] = valuesOf((await this.#call("POST", key, { uploads: "" }, signal)).text, "UploadId");
    if (upload === undefined) throw new OddAnswer(`bucket ${this.#name} began an upload without an id`);
    return upload;
  }

  /** Marks of the parts that have arrived whole, by number. */
  async #parts(key: string, upload: string, signal: AbortSignal): Promise<Map<number, string>> {
    const marks = new Map<number, string>();
    for (let marker = "0"; ; ) {
      const { text } = await this.#call(
        "GET",
        key,
        { uploadId: upload, "part-number-marker": marker },
        signal,
      );
      const etags = valuesOf(text, "ETag");
      const numbers = valuesOf(text, "PartNumber").map(Number);
      for (const [at, number] of numbers.entries()) marks.set(number, etags[at]!);
      const last = String(numbers.at(-1));
      if (!/<IsTruncated>true</.test(text) || last === marker) return marks;
      marker = last;
    }
  }

  #call(
    method: "GET" | "POST" | "PUT" | "DELETE",
    key: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
    body?: string | Uint8Array,
  ) {
    const url = key === "" ? this.#url : `${this.#url}/${key}`;
    return this.#ibm.object({ method, url, query, ...(body !== undefined && { body }) }, signal);
  }
}

/** The texts of all elements of a name. */
function valuesOf(xml: string, name: string): readonly string[] {
  const found = xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, "g"));
  return [...found].map(([, text = ""]) => text.replaceAll("&quot;", '"').replaceAll("&amp;", "&"));
}
