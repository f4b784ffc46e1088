import {
  CALL_MS,
  type CloudPart,
  type ExternalId,
  type ImageStore,
  type ImageTag,
  imageMetadata,
  imageTagOf,
  type Step,
  type StepContext,
  sameImage,
  type UploadOrder,
} from "@nodeyard/driver";
import { z } from "zod";
import type { LxdClient } from "./client.ts";

const IMAGES = z.array(z.object({ fingerprint: z.string(), properties: z.record(z.string(), z.string()) }));

/** Formats of the builder: trees of files for containers, disks for virtual machines. The first is what it builds. */
const TREES = ["tgz", "tar", "squashfs"];
const DISKS = ["qcow2"];

interface StoreParts {
  readonly client: LxdClient;
  /** The bytes of a file on this host. */
  readonly blob: (path: string) => Promise<Blob>;
  /** In the server's words: "x86_64". */
  readonly architecture: () => string;
  /** Whether the labels that use built images are virtual machines. */
  readonly isForVms: boolean;
  readonly uploadMs: number;
}

/**
 * Images of the builder. The tag is in the image's metadata, which its fingerprint covers: two uploads of one file are two images, and an image
 * is there with its tag or not at all.
 */
export function imageStore(parts: StoreParts): ImageStore {
  return {
    formats: parts.isForVms ? [...DISKS, ...TREES] : [...TREES, ...DISKS],
    upload: (order, context) => upload(parts, order, context),
    async *remove(tag, { signal }) {
      yield { step: "find", deadlineMs: CALL_MS };
      for (const id of await tagged(parts.client, tag, signal)) {
        yield { step: "delete", deadlineMs: CALL_MS };
        await remove(parts.client, id, signal);
      }
    },
  };
}

/** The uploaded images of the project; what others made is none of ours. */
export const imagePart = (client: LxdClient): CloudPart => ({
  async list(signal) {
    const images = await client.get(IMAGES, "/images", signal, { recursion: "1" });
    return images.flatMap(({ fingerprint: id, properties }) => {
      const imageTag = imageTagOf(properties);
      return imageTag === null ? [] : [{ id, tag: null, imageTag }];
    });
  },
  delete: (fingerprint, signal) => remove(client, fingerprint, signal),
});

async function* upload(
  { client, blob, architecture, uploadMs }: StoreParts,
  order: UploadOrder,
  { signal }: StepContext,
): AsyncGenerator<Step, ExternalId, void> {
  yield { step: "find", deadlineMs: CALL_MS };
  let [id] = await tagged(client, order.tag, signal);
  if (id === undefined) {
    yield { step: "upload", deadlineMs: uploadMs };
    const metadata = tarOf("metadata.yaml", JSON.stringify(metadataOf(order, architecture())));
    const form = new FormData();
    form.append("metadata", new Blob([metadata]), "metadata.tar");
    const part = DISKS.includes(order.format) ? "rootfs.img" : "rootfs";
    form.append(part, await blob(order.file), `image.${order.format}`);
    // `Response` writes the form, and reads the file as it is sent.
    const { headers, body } = new Response(form);
    const content = { headers: Object.fromEntries(headers), body: body as AsyncIterable<Uint8Array> };
    const call = { method: "POST", path: "/images", content, tryMs: uploadMs } as const;
    const { fingerprint } = await client.done(call, signal);
    id = String(fingerprint);
  }
  yield { step: "done", deadlineMs: CALL_MS, save: { externalId: id } };
  order.progress(order.size);
  return id;
}

/** An image that is gone is no error. */
async function remove(client: LxdClient, fingerprint: string, signal: AbortSignal): Promise<void> {
  await client.done({ method: "DELETE", path: `/images/${fingerprint}` }, signal, /not found/i);
}

async function tagged(client: LxdClient, tag: ImageTag, signal: AbortSignal): Promise<readonly string[]> {
  const all = await imagePart(client).list!(signal);
  return all.flatMap(({ id, imageTag }) => (imageTag && sameImage(imageTag, tag) ? [id] : []));
}

/** JSON is YAML as well. The tag goes over the image's own metadata. */
const metadataOf = ({ name, tag, metadata }: UploadOrder, architecture: string) => ({
  architecture,
  creation_date: 1,
  properties: { name, description: name, ...metadata, ...imageMetadata(tag) },
});

/** A tar archive with one file (ustar of POSIX.1-1988): fields of fixed width, of which one is the sum of all bytes, and two empty blocks. */
function tarOf(name: string, text: string): Uint8Array<ArrayBuffer> {
  const content = Buffer.from(text);
  const octal = (value: number) => `${value.toString(8).padStart(11, "0")}\0`;
  const ids = `0000644\0${"0000000\0".repeat(2)}`;
  const before = `${name.padEnd(100, "\0")}${ids}${octal(content.length)}${octal(0)}`;
  const header = (sum: string) =>
    Buffer.from(`${before}${sum}0${"\0".repeat(100)}ustar\0${"00".padEnd(249, "\0")}`);
  const sum = header(" ".repeat(8)).reduce((all, byte) => all + byte, 0);
  const rest = Buffer.alloc(1024 + ((512 - (content.length % 512)) % 512));
  return Uint8Array.from(Buffer.concat([header(`${sum.toString(8).padStart(6, "0")}\0 `), content, rest]));
}
