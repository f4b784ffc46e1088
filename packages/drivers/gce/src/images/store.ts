import {
  type Clock,
  type CloudPart,
  hashOf,
  type ImageStore,
  type ImageTag,
  imageMetadata,
  imageSteps,
  imageTagOf,
  type OpenFile,
  streamed,
  type UploadOrder,
} from "@nodeyard/driver";
import type { Google, Operation } from "../client/google.ts";
import type { GceProviderOwn } from "../config.ts";
import { operationError } from "../errors.ts";
import { labelsOf, marksIn } from "../tags.ts";
import { diskArchive } from "./archive.ts";
import { bucketOf } from "./bucket.ts";

/** An image, as far as the driver reads it. */
interface Image {
  readonly name: string;
  readonly status?: string;
  readonly description?: string;
}

interface StoreParts {
  readonly google: Google;
  readonly clock: Clock;
  readonly openFile: OpenFile;
  readonly own: GceProviderOwn;
}

/** Images of the project, by way of the bucket, and what of them is left over. Undefined: the provider has no bucket. */
export function imagesOf({ google, clock, openFile, own }: StoreParts): {
  readonly store?: ImageStore;
  readonly parts: Readonly<Record<string, CloudPart>>;
} {
  const root = `projects/${google.project}/`;
  const idOf = ({ name }: Pick<Image, "name">) => `${root}global/images/${name}`;
  const pathOf = (id: string) => `/${id.slice(root.length)}`;
  const read = (id: string, signal: AbortSignal) =>
    google.maybe<Image>({ method: "GET", path: pathOf(id) }, signal);
  const image: CloudPart = {
    async list(signal) {
      const all = await google.list<Image>("/global/images", signal);
      return all
        .map((one) => ({ id: idOf(one), tag: null, imageTag: imageTagOf(marksIn(one.description)) }))
        .filter(({ imageTag }) => imageTag !== null);
    },
    async delete(id, signal) {
      if (!id.startsWith(root)) return;
      const operation = await google.maybe<Operation>({ method: "DELETE", path: pathOf(id) }, signal);
      if (operation !== undefined) await google.ended(operation, signal);
    },
  };
  if (own.bucket === null) return { parts: { image } };
  const bucket = bucketOf(google, own.bucket);
  const store = imageSteps<Image>({
    ...{ clock, idOf, read, formats: ["raw"], uploadMs: own.imageUploadTimeoutMs },
    metadataOf: ({ description }) => marksIn(description),
    find: async (tag, signal) => [await read(idOf({ name: nameOf(tag) }), signal)],
    stateOf: ({ status = "" }) =>
      status === "READY" ? "ready" : status === "PENDING" ? "busy" : `is ${status}`,
    create: async ({ tag }) => idOf({ name: nameOf(tag) }),
    async send(_, order, __, signal) {
      const { tag } = order;
      if (!(await bucket.has(tag, signal)))
        await bucket.put(tag, diskArchive(streamed(openFile, order), order.size), signal);
      const body = insertBody(order, bucket.sourceOf(tag), own.families.get(tag.image) ?? null);
      const call = { method: "POST", path: "/global/images", body } as const;
      const { error } = await google.ended(await google.compute<Operation>(call, signal), signal);
      const [fault] = error?.errors ?? [];
      if (fault !== undefined) throw operationError(fault, `image ${body.name}`);
    },
    delete: image.delete,
    clean: async (tag, signal) => void (await bucket.delete(tag, signal)),
  });
  return { store, parts: { image, object: bucket.part } };
}

/** Name of an upload's image: the same at each attempt, so that there are never two. */
function nameOf(tag: ImageTag): string {
  const hash = hashOf(imageMetadata(tag));
  const image = tag.image
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replace(/^[^a-z]+/, "");
  return `${(image || "image").slice(0, 38)}-${tag.uploadId}-${hash.slice(0, 12)}`;
}

function insertBody({ tag, metadata, name }: UploadOrder, source: string, family: string | null) {
  const marks = imageMetadata(tag);
  return {
    name: nameOf(tag),
    description: JSON.stringify({ ...metadata, name, ...marks }),
    labels: labelsOf({ ...marks, ...metadata }),
    ...(family !== null && { family }),
    rawDisk: { source, containerType: "TAR" },
  };
}
