import { createHash } from "node:crypto";
import type { Answer } from "./double-server.ts";

const NAMESPACE = ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"';
/** Parts of an upload, except the last, have at least this many bytes. */
const LEAST = 5 << 20;

interface Upload {
  readonly key: string;
  readonly parts: Map<number, Uint8Array>;
}

/** The request is refused. */
export class BucketRefusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }

  answer(): Answer {
    const later = this.status === 429 ? { "retry-after": "1" } : {};
    const text = `<?xml version="1.0"?><Error><Code>${this.code}</Code><Message>${this.message}</Message></Error>`;
    return { status: this.status, headers: { "content-type": "application/xml", ...later }, text };
  }
}

/** Object storage as far as uploads need it: one bucket in the XML of S3, as IBM and Google have it. */
export class Bucket {
  readonly bucket = "ci-images";
  readonly objects = new Map<string, Uint8Array>();
  readonly uploads = new Map<string, Upload>();
  /** VPC does not find what is here. */
  loses = false;
  #count = 0;

  answer(method: string, path: string, query: URLSearchParams, body: Uint8Array, most: number): Answer {
    const [bucket, ...rest] = path.slice(1).split("/").map(decodeURIComponent);
    const key = rest.join("/");
    if (bucket !== this.bucket)
      throw new BucketRefusal(404, "NoSuchBucket", "The specified bucket does not exist.");
    const id = query.get("uploadId");
    const has = (word: string) => query.has(word);
    if (key === "" && method === "GET") {
      if (has("location")) return xml(`<LocationConstraint${NAMESPACE}>us-south-smart</LocationConstraint>`);
      const prefix = query.get("prefix") ?? "";
      return has("uploads") ? this.#uploads(prefix) : this.#list(prefix, query, most);
    }
    if (method === "POST" && has("uploads")) {
      const upload = `0100${String(++this.#count).padStart(8, "0")}`;
      this.uploads.set(upload, { key, parts: new Map() });
      return xml(
        `<InitiateMultipartUploadResult${NAMESPACE}><Bucket>${bucket}</Bucket><Key>${key}</Key><UploadId>${upload}</UploadId></InitiateMultipartUploadResult>`,
      );
    }
    if (id !== null) return this.#part(method, id, query, body, most);
    if (method === "PUT") {
      this.objects.set(key, body);
      return { status: 200, headers: { etag: markOf(body) }, text: "" };
    }
    const found = this.objects.get(key);
    if (method === "DELETE") {
      this.objects.delete(key);
      return { status: 204, headers: {}, text: "" };
    }
    if (found === undefined) throw new BucketRefusal(404, "NoSuchKey", "The specified key does not exist.");
    return {
      status: 200,
      headers: { etag: markOf(found), "content-length": String(found.byteLength) },
      text: "",
    };
  }

  #part(method: string, id: string, query: URLSearchParams, body: Uint8Array, most: number): Answer {
    const upload = this.uploads.get(id);
    if (upload === undefined)
      throw new BucketRefusal(404, "NoSuchUpload", "The specified multipart upload does not exist.");
    const { key, parts } = upload;
    if (method === "DELETE") {
      this.uploads.delete(id);
      return { status: 204, headers: {}, text: "" };
    }
    if (method === "PUT") {
      parts.set(Number(query.get("partNumber")), body);
      return { status: 200, headers: { etag: markOf(body) }, text: "" };
    }
    if (method === "GET") {
      const marker = Number(query.get("part-number-marker") ?? 0);
      const all = [...parts].sort(([a], [b]) => a - b).filter(([number]) => number > marker);
      const shown = all
        .slice(0, most)
        .map(
          ([number, bytes]) =>
            `<Part><PartNumber>${number}</PartNumber><ETag>${quoted(markOf(bytes))}</ETag><Size>${bytes.byteLength}</Size></Part>`,
        );
      return xml(
        `<ListPartsResult${NAMESPACE}><Key>${key}</Key><UploadId>${id}</UploadId><IsTruncated>${all.length > most}</IsTruncated>${shown.join("")}</ListPartsResult>`,
      );
    }
    const named = [
      ...Buffer.from(body)
        .toString()
        .matchAll(/<PartNumber>(\d+)<\/PartNumber>\s*<ETag>([^<]*)<\/ETag>/g),
    ];
    const whole = named.map(([, number, mark], at) => {
      const bytes = parts.get(Number(number));
      if (bytes === undefined || markOf(bytes) !== mark?.replaceAll("&quot;", '"'))
        throw new BucketRefusal(400, "InvalidPart", `part ${number} is not there`);
      if (at < named.length - 1 && bytes.byteLength < LEAST)
        throw new BucketRefusal(400, "EntityTooSmall", `part ${number} is too small`);
      return bytes;
    });
    this.uploads.delete(id);
    this.objects.set(key, Buffer.concat(whole));
    return xml(
      `<CompleteMultipartUploadResult${NAMESPACE}><Bucket>${this.bucket}</Bucket><Key>${key}</Key><ETag>x</ETag></CompleteMultipartUploadResult>`,
    );
  }

  #list(prefix: string, query: URLSearchParams, most: number): Answer {
    const keys = [...this.objects.keys()].filter((one) => one.startsWith(prefix)).sort();
    const from = Number(query.get("continuation-token") ?? query.get("marker") ?? 0);
    const shown = keys
      .slice(from, from + most)
      .map(
        (key) => `<Contents><Key>${key}</Key><Size>${this.objects.get(key)!.byteLength}</Size></Contents>`,
      );
    const isCut = from + most < keys.length;
    const next = isCut ? `<NextContinuationToken>${from + most}</NextContinuationToken>` : "";
    return xml(
      `<ListBucketResult${NAMESPACE}><Name>${this.bucket}</Name><IsTruncated>${isCut}</IsTruncated>${next}${shown.join("")}</ListBucketResult>`,
    );
  }

  #uploads(prefix: string): Answer {
    const all = [...this.uploads].filter(([, { key }]) => key.startsWith(prefix));
    const shown = all.map(([id, { key }]) => `<Upload><Key>${key}</Key><UploadId>${id}</UploadId></Upload>`);
    return xml(
      `<ListMultipartUploadsResult${NAMESPACE}><Bucket>${this.bucket}</Bucket>${shown.join("")}</ListMultipartUploadsResult>`,
    );
  }
}

function markOf(bytes: Uint8Array): string {
  return `"${createHash("md5").update(bytes).digest("hex")}"`;
}

function quoted(mark: string): string {
  return mark.replaceAll('"', "&quot;");
}

function xml(text: string): Answer {
  return {
    status: 200,
    headers: { "content-type": "application/xml" },
    text: `<?xml version="1.0" encoding="UTF-8"?>${text}`,
  };
}
