import { OddAnswer, unlessRefused } from "./faults.ts";
import type { HttpCalls } from "./http-calls.ts";
import { allPages } from "./pages.ts";
import type { PartedStore } from "./parted-files.ts";
import type { BearerToken } from "./sign-in.ts";
import { bearerRequest, type RequestParts, type Unsent } from "./wire.ts";

/** A bucket of a cloud that speaks the XML of S3 and takes bearer tokens. `root`: its address. */
export function bucketAt<Token extends BearerToken>(calls: HttpCalls<Token>, root: string) {
  const name = root.slice(root.lastIndexOf("/") + 1);
  /** Calls an object by its key, or by an empty one the bucket. */
  const call = (method: Unsent["method"], key: string, parts: RequestParts, signal: AbortSignal) => {
    const request = ({ text }: Token) => bearerRequest(method, urlOf(key), text, parts);
    return calls.call({ operation: `objects.${method}`, request, signal }, ({ text, headers }) => ({
      text,
      mark: headers.etag ?? "",
    }));
  };
  const urlOf = (key: string) =>
    key === "" ? root : `${root}/${key.split("/").map(encodeURIComponent).join("/")}`;
  /** The text of an answer that has an element: without it, it would look like a bucket of nothing. */
  const read = async (
    key: string,
    query: NonNullable<RequestParts["query"]>,
    element: string,
    signal: AbortSignal,
  ): Promise<string> => {
    const { text } = await call("GET", key, { query }, signal);
    if (text.includes(`<${element}`)) return text;
    throw new OddAnswer(`bucket ${name} answered without ${element}`);
  };

  const store: PartedStore<string> = {
    async whole(prefix, signal) {
      const pages = await allPages(
        `list of bucket ${name}`,
        (token) => {
          const next = token === undefined ? {} : { "continuation-token": token };
          return read("", { "list-type": "2", prefix, ...next }, "ListBucketResult", signal);
        },
        (page) => elementsIn(page, "NextContinuationToken")[0],
      );
      return pages.flatMap((page) => elementsIn(page, "Key"));
    },
    async begun(prefix, signal) {
      // One page has 1000 entries, more than the unfinished uploads of one provider will ever be.
      const page = await read("", { uploads: "", prefix }, "ListMultipartUploadsResult", signal);
      const uploads = elementsIn(page, "UploadId");
      return elementsIn(page, "Key").map((key, at) => [key, uploads[at]!] as const);
    },
    async begin(key, _, signal) {
      const { text } = await call("POST", key, { query: { uploads: "" } }, signal);
      const [upload] = elementsIn(text, "UploadId");
      if (upload === undefined) throw new OddAnswer(`bucket ${name} began an upload without an id`);
      return upload;
    },
    async parts(key, uploadId, signal) {
      const pages = await allPages(
        `list of parts of ${key}`,
        (marker = "0") => read(key, { uploadId, "part-number-marker": marker }, "ListPartsResult", signal),
        (page) => (/<IsTruncated>true</.test(page) ? elementsIn(page, "PartNumber").at(-1) : undefined),
      );
      const all = (element: string) => pages.flatMap((page) => elementsIn(page, element));
      const marks = all("ETag");
      return new Map(all("PartNumber").map((number, at) => [Number(number), marks[at]!]));
    },
    async put(key, uploadId, partNumber, body, signal) {
      return (await call("PUT", key, { query: { partNumber, uploadId }, body }, signal)).mark;
    },
    async complete(key, uploadId, parts, signal) {
      const list = parts.map(
        ([number, mark]) => `<Part><PartNumber>${number}</PartNumber><ETag>${mark}</ETag></Part>`,
      );
      const body = `<CompleteMultipartUpload>${list.join("")}</CompleteMultipartUpload>`;
      const ended = call("POST", key, { query: { uploadId }, body }, signal);
      const answer = await unlessRefused(ended, "NoSuchUpload");
      // It may begin with success, and fail when the parts are put together. Without an upload, an earlier try has put them together.
      const isWhole =
        answer?.text.includes("<CompleteMultipartUploadResult") ??
        (await store.whole(key, signal)).includes(key);
      if (!isWhole) throw new OddAnswer(`bucket ${name} has not completed ${key}`);
    },
    async delete(key, uploadId, signal) {
      const query = uploadId === undefined ? {} : { uploadId };
      await unlessRefused(call("DELETE", key, { query }, signal), "NoSuchKey", "NoSuchUpload");
    },
  };
  return { store, read, urlOf };
}

/** The texts of all elements of a name. */
export function elementsIn(xml: string, name: string): readonly string[] {
  const found = xml.matchAll(new RegExp(`<${name}[^>]*>([^<]*)</${name}>`, "g"));
  return [...found].map(([, text = ""]) => text.replaceAll("&quot;", '"').replaceAll("&amp;", "&"));
}
