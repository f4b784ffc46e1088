import { createHash } from "node:crypto";
import type { Answer, Arrived } from "../../double-server.ts";
import { json, page, Refusal } from "./answers.ts";
import type { Named } from "./discovery.ts";

interface StoredObject {
  readonly bucket: string;
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly more: Readonly<Record<string, unknown>>;
}
interface Session {
  readonly bucket: string;
  readonly name: string;
  readonly more: Readonly<Record<string, unknown>>;
  parts: Uint8Array[];
}

/** Parts of a resumable upload, except the last, have whole multiples of this. */
const UNIT = 256 * 1024;

/** The JSON API of Cloud Storage, with resumable uploads (its guide "Resumable uploads"). Buckets are made by use. */
export class Storage {
  readonly objects = new Map<string, StoredObject>();
  readonly #sessions = new Map<string, Session>();
  readonly #url: () => string;
  #count = 0;

  constructor(url: () => string) {
    this.#url = url;
  }

  has(source: string): boolean {
    const [, key = ""] = /^https:\/\/storage\.googleapis\.com\/(.+)$/.exec(source) ?? [];
    return this.objects.has(decodeURIComponent(key));
  }

  answer(
    { method, path, query }: Named,
    arrived: Arrived,
    body: Record<string, unknown> | undefined,
  ): Answer {
    const { bucket = "", object = "" } = path;
    const key = `${bucket}/${object}`;
    switch (method) {
      case "objects.insert": {
        const name = String(body?.name ?? query.get("name"));
        if (query.get("uploadType") !== "resumable") {
          const stored = { bucket, name, bytes: arrived.body, more: {} };
          this.objects.set(`${bucket}/${name}`, stored);
          return json(200, this.#resource(stored));
        }
        const id = `session-${this.#count++}`;
        this.#sessions.set(id, { bucket, name, more: body ?? {}, parts: [] });
        const asked = `uploadType=resumable&name=${encodeURIComponent(name)}&upload_id=${id}`;
        const location = `${new URL(arrived.url, this.#url()).origin}/upload/storage/v1/b/${bucket}/o?${asked}`;
        return { status: 200, headers: { location }, text: "" };
      }
      case "objects.get": {
        const found = this.objects.get(key);
        if (found === undefined) throw new Refusal(404, "notFound", `No such object: ${key}`);
        return json(200, this.#resource(found));
      }
      case "objects.delete":
        if (!this.objects.delete(key)) throw new Refusal(404, "notFound", `No such object: ${key}`);
        return { status: 204, headers: {}, text: "" };
      case "objects.list": {
        const prefix = query.get("prefix") ?? "";
        const all = [...this.objects.values()].filter(
          (one) => one.bucket === bucket && one.name.startsWith(prefix),
        );
        const { items, nextPageToken } = page(all, query, 1_000);
        return json(200, {
          ...{ kind: "storage#objects", items: items.map((one) => this.#resource(one)) },
          ...(nextPageToken !== undefined && { nextPageToken }),
        });
      }
      default:
        return json(200, { kind: "storage#bucket", id: bucket, name: bucket || body?.name });
    }
  }

  /**
   * A part of a resumable upload, or the question how far it is. Bytes that the bucket has already are ignored (its guide, "Resume an
   * interrupted upload"). `isHalf`: the bucket takes only the first half of the others.
   */
  part(id: string | null, { headers, body }: Arrived, isHalf: boolean): Answer {
    const session = this.#sessions.get(id ?? "");
    if (session === undefined) throw new Refusal(410, "uploadBroken", "the upload session is gone");
    const held = session.parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
    const range = headers["content-range"] ?? `bytes 0-${body.byteLength - 1}/${body.byteLength}`;
    const [, from, to, total] = /^bytes (?:(\d+)-(\d+)|\*)\/(\d+|\*)$/.exec(range) ?? [];
    if (total === undefined) throw new Refusal(400, "invalid", `cannot read the range ${range}`);
    const isQuestion = from === undefined && body.byteLength === 0;
    if (!isQuestion) {
      if (Number(from) > held || Number(to) + 1 - Number(from) !== body.byteLength)
        throw new Refusal(400, "invalid", `the part ${range} does not follow byte ${held}`);
      if (total === "*" && body.byteLength % UNIT !== 0)
        throw new Refusal(400, "invalid", `a part must have a multiple of ${UNIT} bytes`);
    }
    const fresh = isQuestion ? body : body.subarray(held - Number(from));
    const taken = isHalf ? fresh.subarray(0, Math.floor(fresh.byteLength / 2 / UNIT) * UNIT) : fresh;
    session.parts.push(taken);
    const now = held + taken.byteLength;
    if (total === "*" || now < Number(total))
      return { status: 308, headers: now === 0 ? {} : { range: `bytes=0-${now - 1}` }, text: "" };
    const { bucket, name, more } = session;
    const stored = { bucket, name, more, bytes: Buffer.concat(session.parts) };
    this.objects.set(`${bucket}/${name}`, stored);
    return json(200, this.#resource(stored));
  }

  #resource({ bucket, name, bytes, more }: StoredObject): object {
    const md5Hash = createHash("md5").update(bytes).digest("base64");
    const at = { bucket, name, id: `${bucket}/${name}/1`, generation: "1" };
    return { ...more, ...at, kind: "storage#object", size: String(bytes.byteLength), md5Hash };
  }
}
