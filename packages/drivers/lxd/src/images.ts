import {
  CALL_MS,
  type CloudPart,
  type ImageStore,
  type ImageTag,
  imageMetadata,
  imageTagOf,
  sameImage,
  tarEnd,
  tarHeader,
  type UploadOrder,
} from "@nodeyard/driver";
import { z } from "zod";
import type { LxdClient } from "./client.ts";
import { serverOf } from "./instances.ts";

const IMAGES = z.array(z.object({ fingerprint: z.string(), properties: z.record(z.string(), z.string()) }));

/** Formats of the builder: trees of files for containers, disks for virtual machines. The first is what it builds. */
const TREES = ["tgz", "tar", "squashfs"];
const DISKS = ["qcow2"];

/** The bytes of a file on this host. */
export type OpenBlob = (path: string) => Promise<Blob>;

/**
 * Images of the builder. The tag is in the image's metadata, which its fingerprint covers: two uploads of one file are two images, and an image
 * is there with its tag or not at all. `isForVms`: the labels that use built images are virtual machines.
 */
export function imageStore(
  client: LxdClient,
  blob: OpenBlob,
  { isForVms, uploadMs }: { readonly isForVms: boolean; readonly uploadMs: number },
): ImageStore {
  return {
    formats: isForVms ? [...DISKS, ...TREES] : [...TREES, ...DISKS],
    async *upload(order, { signal }) {
      yield { step: "find", deadlineMs: CALL_MS };
      let [id] = await tagged(client, order.tag, signal);
      if (id === undefined) {
        yield { step: "upload", deadlineMs: uploadMs };
        const content = await contentOf(client, order, blob, signal);
        const call = { method: "POST", path: "/images", content, tryMs: uploadMs } as const;
        id = String((await client.done(call, signal)).fingerprint);
      }
      yield { step: "done", deadlineMs: CALL_MS, save: { externalId: id } };
      order.progress(order.size);
      return id;
    },
    async *remove(tag, { signal }) {
      yield { step: "find", deadlineMs: CALL_MS };
      for (const id of await tagged(client, tag, signal)) {
        yield { step: "delete", deadlineMs: CALL_MS };
        await remove(client, id, signal);
      }
    },
  };
}

/** The images of the project. */
export const imagePart = (client: LxdClient): CloudPart => ({
  async list(signal) {
    const images = await client.get(IMAGES, "/images", signal, { recursion: "1" });
    return images.map(({ fingerprint: id, properties }) => ({ id, imageTag: imageTagOf(properties) }));
  },
  delete: (fingerprint, signal) => remove(client, fingerprint, signal),
});

/** An upload as a form of metadata and file, which is read as it is sent. JSON is YAML as well. */
async function contentOf(client: LxdClient, order: UploadOrder, blob: OpenBlob, signal: AbortSignal) {
  const { environment } = await serverOf(client, signal);
  const { name, tag, metadata } = order;
  const properties = { name, description: name, ...metadata, ...imageMetadata(tag) };
  const about = { architecture: environment.architectures[0], creation_date: 1, properties };
  const form = new FormData();
  const text = Buffer.from(JSON.stringify(about));
  const archive = [tarHeader("metadata.yaml", text.length), text, tarEnd(text.length)];
  form.append("metadata", new Blob(archive), "metadata.tar");
  const part = DISKS.includes(order.format) ? "rootfs.img" : "rootfs";
  form.append(part, await blob(order.file), `image.${order.format}`);
  const { headers, body } = new Response(form);
  return { headers: Object.fromEntries(headers), body: body as AsyncIterable<Uint8Array> };
}

/** An image that is gone is no error. */
async function remove(client: LxdClient, fingerprint: string, signal: AbortSignal): Promise<void> {
  await client.done({ method: "DELETE", path: `/images/${fingerprint}` }, signal, /^404 /);
}

async function tagged(client: LxdClient, tag: ImageTag, signal: AbortSignal): Promise<readonly string[]> {
  const all = await imagePart(client).list!(signal);
  return all.flatMap(({ id, imageTag }) => (imageTag && sameImage(imageTag, tag) ? [id] : []));
}
