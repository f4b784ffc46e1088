import { createHash } from "node:crypto";
import {
  CALL_MS,
  type CloudPart,
  DriverError,
  type ExternalId,
  type ImageStore,
  type ImageTag,
  imageMetadata,
  imageTagOf,
  type OpenFile,
  type Step,
  type StepContext,
  sameImage,
  streamed,
  type UploadOrder,
} from "@nodeyard/driver";
import { z } from "zod";
import { type LxdClient, LxdError } from "./client.ts";

const IMAGE = z.object({
  fingerprint: z.string(),
  size: z.number(),
  properties: z.record(z.string(), z.string()),
});
type Image = z.infer<typeof IMAGE>;

/** Part of an upload by format of the builder: trees of files for containers, disks for virtual machines. */
const PARTS: Readonly<Record<string, "rootfs" | "rootfs.img">> = {
  ...{ tgz: "rootfs", tar: "rootfs", squashfs: "rootfs", qcow2: "rootfs.img" },
};
const CONTAINER = ["tgz", "tar", "squashfs", "qcow2"];
const VM = ["qcow2", "tgz", "tar", "squashfs"];

interface StoreParts {
  readonly client: LxdClient;
  readonly openFile: OpenFile;
  /** In the server's words: "x86_64". */
  readonly architecture: () => string;
  /** Whether the labels that use built images are virtual machines: the builder then makes disks. */
  readonly isForVms: boolean;
  readonly uploadMs: number;
}

/**
 * Images of the builder. The tag is in the image's metadata, which its fingerprint covers: two uploads of one file are two images, and an image
 * is there with its tag or not at all.
 */
export function imageStore(parts: StoreParts): ImageStore {
  return {
    formats: parts.isForVms ? VM : CONTAINER,
    upload: (order, context) => upload(parts, order, context),
    remove: (tag, context) => remove(parts.client, tag, context),
  };
}

const imagesOf = (client: LxdClient, signal: AbortSignal): Promise<readonly Image[]> =>
  client.get(z.array(IMAGE), "/images", signal, { recursion: "1" });

/** The uploaded images of the project; what others made is none of ours. */
export const imagePart = (client: LxdClient): CloudPart => ({
  async list(signal) {
    const images = await imagesOf(client, signal);
    return images.flatMap(({ fingerprint: id, properties }) => {
      const imageTag = imageTagOf(properties);
      return imageTag === null ? [] : [{ id, tag: null, imageTag }];
    });
  },
  delete: (fingerprint, signal) => deleteImage(client, fingerprint, signal),
});

/** An image that is gone is no error. */
async function deleteImage(client: LxdClient, fingerprint: string, signal: AbortSignal) {
  try {
    await client.done({ method: "DELETE", path: `/images/${fingerprint}` }, signal);
  } catch (error) {
    if (!(error instanceof LxdError && error.status === 404)) throw error;
  }
}

async function* upload(
  { client, openFile, architecture, uploadMs }: StoreParts,
  order: UploadOrder,
  { signal }: StepContext,
): AsyncGenerator<Step, ExternalId, void> {
  yield { step: "find", deadlineMs: CALL_MS };
  const [known] = await tagged(client, order.tag, signal);
  if (known !== undefined) {
    yield { step: "found", deadlineMs: CALL_MS, save: { externalId: known.fingerprint } };
    order.progress(order.size);
    return known.fingerprint;
  }
  yield { step: "upload", deadlineMs: uploadMs };
  const metadata = tarOf("metadata.yaml", JSON.stringify(metadataOf(order, architecture())));
  const digest = createHash("sha256").update(metadata);
  async function* file() {
    for await (const bytes of streamed(openFile, order)) {
      digest.update(bytes);
      yield bytes;
    }
  }
  const content = multipart([
    ["metadata", "metadata.tar", [metadata]],
    [PARTS[order.format] ?? "rootfs", `image.${order.format}`, file()],
  ]);
  const call = { method: "POST", path: "/images", content, tryMs: uploadMs } as const;
  const { fingerprint } = await client.done(call, signal);
  const id = String(fingerprint);
  yield { step: "check", deadlineMs: CALL_MS, save: { externalId: id } };
  // The server's fingerprint is that of the bytes which it got.
  if (id === digest.digest("hex")) return id;
  await deleteImage(client, id, signal);
  throw new DriverError("transient", `image ${id} has other bytes than ${order.file}`);
}

async function* remove(
  client: LxdClient,
  tag: ImageTag,
  { signal }: StepContext,
): AsyncGenerator<Step, void, void> {
  yield { step: "find", deadlineMs: CALL_MS };
  for (const { fingerprint } of await tagged(client, tag, signal)) {
    yield { step: "delete", deadlineMs: CALL_MS };
    await deleteImage(client, fingerprint, signal);
  }
}

async function tagged(client: LxdClient, tag: ImageTag, signal: AbortSignal): Promise<readonly Image[]> {
  return (await imagesOf(client, signal)).filter(({ properties }) => {
    const own = imageTagOf(properties);
    return own !== null && sameImage(own, tag);
  });
}

/** JSON is YAML as well. The tag goes over the image's own metadata. */
const metadataOf = ({ name, tag, metadata }: UploadOrder, architecture: string) => ({
  architecture,
  creation_date: 1,
  properties: { name, description: name, ...metadata, ...imageMetadata(tag) },
});

/** A tar archive with one file (POSIX.1-1988, ustar): fields of fixed width, the sum of the header's bytes in octal, two empty blocks. */
function tarOf(name: string, text: string): Uint8Array {
  const content = Buffer.from(text);
  const header = Buffer.alloc(512);
  const octal = (value: number, at: number, width: number) =>
    header.write(value.toString(8).padStart(width, "0"), at);
  header.write(name, 0);
  octal(0o644, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(content.length, 124, 11);
  octal(0, 136, 11);
  header.write("        0", 148);
  header.write("ustar\u000000", 257);
  octal(
    header.reduce((sum, byte) => sum + byte, 0),
    148,
    6,
  );
  header.write("\u0000 ", 154);
  const rest = (512 - (content.length % 512)) % 512;
  return Buffer.concat([header, content, Buffer.alloc(rest + 1024)]);
}

type Part = readonly [
  name: string,
  filename: string,
  bytes: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
];

/** A form with files (RFC 7578). The boundary is longer than what files have by chance. */
function multipart(parts: readonly Part[]) {
  const boundary = `nodeyard-${createHash("sha256")
    .update(JSON.stringify(parts.map(([, name]) => name)))
    .digest("hex")}`;
  async function* body() {
    for (const [name, filename, bytes] of parts) {
      const head = `--${boundary}\r\ncontent-disposition: form-data; name="${name}"; filename="${filename}"\r\n`;
      yield Buffer.from(`${head}content-type: application/octet-stream\r\n\r\n`);
      yield* bytes;
      yield Buffer.from("\r\n");
    }
    yield Buffer.from(`--${boundary}--\r\n`);
  }
  return { headers: { "content-type": `multipart/form-data; boundary=${boundary}` }, body: body() };
}
