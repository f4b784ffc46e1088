import {
  type Clock,
  type CloudPart,
  type ImageStore,
  type ImageTag,
  imageMetadata,
  imageSteps,
  type OpenFile,
  type UploadOrder,
} from "@nodeyard/driver";
import { Bucket } from "./bucket.ts";
import type { IbmProviderConfig } from "./config.ts";
import { hasCode, IN_USE, ofOrder } from "./errors.ts";
import type { Ibm } from "./ibm.ts";
import type { Image, Lookups } from "./lookups.ts";
import type { Names } from "./names.ts";

/** Of an upload of which there is no image yet. */
const OPEN = "open";

/** An image by the name that its upload gives it, which proves its tag; its id is IBM's, once there is one. */
interface Upload extends Partial<Image> {
  readonly name: string;
  readonly tag?: ImageTag;
}

const pathOf = (id: string) => `/images/${encodeURIComponent(id)}`;

/** Images of the account, by way of the bucket, and what of them is left over. Without a bucket there is no store. */
export function imagesOf({
  config: { own },
  ibm,
  clock,
  names,
  lookups,
  openFile,
}: {
  readonly config: IbmProviderConfig;
  readonly ibm: Ibm;
  readonly clock: Clock;
  readonly names: Names;
  readonly lookups: Lookups;
  readonly openFile: OpenFile;
}): { readonly store?: ImageStore; readonly parts: Readonly<Record<string, CloudPart>> } {
  const image: CloudPart = {
    async list(signal) {
      const all = await ibm.list<Image>("/images", signal, { visibility: "private" });
      return all
        .map(({ id, name }) => ({ id, tag: null, imageTag: names.imageTag(name) }))
        .filter(({ imageTag }) => imageTag !== null);
    },
    delete: (id, signal) => ibm.delete("image", pathOf(id), signal),
  };
  if (own.objectStorage === null) return { parts: { image } };
  const bucket = new Bucket(ibm, own.objectStorage);
  const keyOf = (name: string) => `${name}.${own.imageFormat}`;
  const named = async (name: string, signal: AbortSignal) =>
    (await ibm.list<Image>("/images", signal, { name })).filter((one) => one.name === name);
  const order = async ({ tag }: UploadOrder, name: string, signal: AbortSignal) => ({
    name,
    resource_group: { id: await lookups.group(names.group(null), true, signal) },
    file: { href: await bucket.hrefOf(keyOf(name), signal) },
    operating_system: { name: own.systems.get(tag.image) ?? "" },
  });
  const store = imageSteps<Upload>({
    ...{ clock, formats: [own.imageFormat], uploadMs: own.uploadMs },
    idOf: ({ name }) => name,
    externalIdOf: ({ id = "" }) => id,
    metadataOf: ({ tag }) => (tag ? imageMetadata(tag) : {}),
    async find(tag, signal) {
      const name = names.image(tag);
      const made = await named(name, signal);
      if (made.length > 0) return made.map((one) => ({ ...one, tag }));
      return [{ name, status: OPEN, tag }];
    },
    // Lists show a new one late; the step has a limit.
    read: async (name, signal) => (await named(name, signal))[0] ?? { name, status: "pending" },
    stateOf({ status = "", status_reasons: [reason] = [] }, _, isSent) {
      if (status === OPEN) return isSent ? "is not there" : "open";
      if (status === "available") return "ready";
      return status === "pending"
        ? "busy"
        : `is ${status}: ${reason?.message ?? ""} (${reason?.code ?? "no reason is given"})`;
    },
    create: async ({ tag }) => names.image(tag),
    async *send(name, upload, _, signal) {
      const key = keyOf(name);
      if (!(await bucket.keys(key, signal)).includes(key)) yield* bucket.put(key, upload, openFile, signal);
      else upload.progress(upload.size);
      const body = await order(upload, name, signal);
      try {
        await ibm.call("POST", "/images", signal, { body });
      } catch (error) {
        if (!hasCode(error, IN_USE)) throw ofOrder(error);
      }
    },
    async delete(name, signal) {
      for (const { id } of await named(name, signal)) await image.delete(id, signal);
    },
    clean: (tag, signal) => bucket.delete(keyOf(names.image(tag)), signal),
  });
  return {
    store,
    parts: {
      image,
      object: {
        async list(signal) {
          const keys = [
            ...(await bucket.keys("npimage", signal)),
            ...(await bucket.begun("npimage", signal)).map(({ key }) => key),
          ];
          return [...new Set(keys)]
            .map((key) => ({ id: key, tag: null, imageTag: names.imageTag(key) }))
            .filter(({ imageTag }) => imageTag !== null);
        },
        delete: (key, signal) => bucket.delete(key, signal),
      },
    },
  };
}
