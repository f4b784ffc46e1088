import { allPages, OddAnswer, type PartedStore } from "@nodeyard/driver";
import { unlessMissing } from "./errors.ts";
import type { Ibm } from "./ibm.ts";

type Query = Readonly<Record<string, string>>;

/** The bucket through which files become images, in the dialect of S3. */
export function bucketOf(
  ibm: Ibm,
  { endpoint, bucketName: name }: { readonly endpoint: string; readonly bucketName: string },
) {
  const root = `${endpoint.replace(/\/+$/, "")}/${name}`;
  const call = (
    method: "GET" | "POST" | "PUT" | "DELETE",
    key: string,
    query: Query,
    signal: AbortSignal,
    body?: string | Uint8Array,
  ) => ibm.object(method, key === "" ? root : `${root}/${key}`, { query, body }, signal);

  /** The text of an answer that has an element: without it, it would look like a bucket of nothing. */
  async function read(key: string, query: Query, element: string, signal: AbortSignal): Promise<string> {
    const { text } = await call("GET", key, query, signal);
    if (text.includes(`<${element}`)) return text;
    throw new OddAnswer(`bucket ${name} answered without ${element}`);
  }

  const store: PartedStore<string> = {
    async whole(prefix, signal) {
      const pages = await allPages(
        `list of bucket ${name}`,
        (token) => {
          const next = token === undefined ? {} : { "continuation-token": token };
          return read("", { "list-type": "2", prefix, ...next }, "ListBucketResult", signal);
        },
        (page) => valuesIn(page, "NextContinuationToken")[0],
      );
      return pages.flatMap((page) => valuesIn(page, "Key"));
    },
    async begun(prefix, signal) {
      const page = await read("", { uploads: "", prefix }, "ListMultipartUploadsResult", signal);
      const uploads = valuesIn(page, "UploadId");
      return valuesIn(page, "Key").map((key, at) => [key, uploads[at]!] as const);
    },
    async begin(key, _, signal) {
      const [upload] = valuesIn((await call("POST", key, { uploads: "" }, signal)).text, "UploadId");
      if (upload === undefined) throw new OddAnswer(`bucket ${name} began an upload without an id`);
      return upload;
    },
    async parts(key, uploadId, signal) {
      const pages = await allPages(
        `list of parts of ${key}`,
        (marker = "0") => read(key, { uploadId, "part-number-marker": marker }, "ListPartsResult", signal),
        (page) => (/<IsTruncated>true</.test(page) ? valuesIn(page, "PartNumber").at(-1) : undefined),
      );
      const all = (element: string) => pages.flatMap((page) => valuesIn(page, element));
      const marks = all("ETag");
      return new Map(all("PartNumber").map((number, at) => [Number(number), marks[at]!]));
    },
    async put(key, uploadId, number, bytes, signal) {
      return (await call("PUT", key, { partNumber: String(number), uploadId }, signal, bytes)).mark;
    },
    async complete(key, uploadId, parts, signal) {
      const list = parts.map(
        ([number, mark]) => `<Part><PartNumber>${number}</PartNumber><ETag>${mark}</ETag></Part>`,
      );
      const body = `<CompleteMultipartUpload>${list.join("")}</CompleteMultipartUpload>`;
      const { text } = await call("POST", key, { uploadId }, signal, body);
      // It may begin with success, and fail when the parts are put together.
      if (!text.includes("<CompleteMultipartUploadResult"))
        throw new OddAnswer(`bucket ${name} has not completed ${key}`);
    },
    async delete(key, uploadId, signal) {
      const query = uploadId === undefined ? {} : { uploadId };
      await unlessMissing(call("DELETE", key, query, signal), uploadId === undefined ? "object" : "upload");
    },
  };

  return {
    store,
    /** Where VPC finds an object: the location without its class, as in `us-south-smart`. */
    async hrefOf(key: string, signal: AbortSignal): Promise<string> {
      const text = await read("", { location: "" }, "LocationConstraint", signal);
      const [location = ""] = valuesIn(text, "LocationConstraint");
      return `cos://${location.replace(/-[^-]+$/, "")}/${name}/${key}`;
    },
  };
}

/** The texts of all elements of a name. */
function valuesIn(xml: string, name: string): readonly string[] {
  const found = xml.matchAll(new RegExp(`<${name}[^>]*>([^<]*)</${name}>`, "g"));
  return [...found].map(([, text = ""]) => text.replaceAll("&quot;", '"').replaceAll("&amp;", "&"));
}
