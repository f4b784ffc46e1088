import {
  type Clock,
  type CloudPart,
  type ImageStore,
  type ImageTag,
  imageMetadata,
  imageSteps,
  type OpenFile,
} from "@nodeyard/driver";
import { Bucket } from "./bucket.ts";
import type { IbmProviderConfig } from "./config.ts";
import { hasCode, IN_USE, ofOrder } from "./errors.ts";
import type { Ibm } from "./ibm.ts";
import type { Image, Lookups } from "./lookups.ts";
import type { Names } from "./names.ts";

/** An image by the name that its upload gives it, which proves its tag; its id is IBM's, once there is one. */
interface Upload extends Partial<Image> {
  readonly name: string;
  readonly tag?: ImageTag;
}
/** Of an upload of which there is no image yet. */
const OPEN = "open";

interface StoreParts {
  readonly config: IbmProviderConfig;
  readonly ibm: Ibm;
  readonly clock: Clock;
  readonly names: Names;
  readonly lookups: Lookups;
  readonly openFile: OpenFile;
}

/** Images of the account, by way of the bucket, and what of them is left over. Without a bucket there is no store. */
export function imagesOf({ config: { own }, ibm, clock, names, lookups, openFile }: StoreParts): {
  readonly store?: ImageStore;
  readonly parts: Readonly<Record<string, CloudPart>>;
} {
  /** What has a tag of this installation in its name. */
  const tagged = (all: readonly (readonly [id: string, name: string])[]) =>
    all
      .map(([id, name]) => ({ id, tag: null, imageTag: names.imageTag(name) }))
      .filter((one) => one.imageTag !== null);
  const image: CloudPart = {
    list: async (signal) => {
      const all = await ibm.list<Image>("images", signal, { visibility: "private" });
      return tagged(all.map(({ id, name }) => [id, name] as const));
    },
    delete: (id, signal) => ibm.delete("image", `/images/${encodeURIComponent(id)}`, signal),
  };
  if (own.objectStorage === null) return { parts: { image } };
  const bucket = new Bucket(ibm, own.objectStorage);
  const keyOf = (name: string) => `${name}.${own.imageFormat}`;
  const named = (name: string, signal: AbortSignal) => ibm.named<Image>("images", name, signal);
  const store = imageSteps<Upload>({
    ...{ clock, formats: [own.imageFormat], uploadMs: own.uploadMs },
    idOf: ({ name }) => name,
    externalIdOf: ({ id = "" }) => id,
    metadataOf: ({ tag }) => (tag ? imageMetadata(tag) : {}),
    async find(tag, signal) {
      const name = names.image(tag);
      return [{ name, status: OPEN, ...(await named(name, signal)), tag }];
    },
    // Lists show a new one late; the step has a limit.
    read: async (name, signal) => (await named(name, signal)) ?? { name, status: "pending" },
    stateOf({ status = "", status_reasons: [reason] = [] }, _, isSent) {
      if (status === OPEN) return isSent ? "is not there" : "open";
      if (status === "available") return "ready";
      if (status === "pending") return "busy";
      return `is ${status}: ${reason?.message ?? ""} (${reason?.code ?? "no reason is given"})`;
    },
    create: async ({ tag }) => names.image(tag),
    async *send(name, order, _, signal) {
      const key = keyOf(name);
      if ((await bucket.keys(key, signal)).includes(key)) order.progress(order.size);
      else yield* bucket.put(key, order, openFile, signal);
      const body = {
        name,
        resource_group: await lookups.group(names.group(null), signal),
        file: { href: await bucket.hrefOf(key, signal) },
        operating_system: { name: own.systems.get(order.tag.image) ?? "" },
      };
      try {
        await ibm.call("POST", "/images", signal, { body });
      } catch (error) {
        if (!hasCode(error, IN_USE)) throw ofOrder(error);
      }
    },
    async delete(name, signal) {
      const found = await named(name, signal);
      if (found !== undefined) await image.delete(found.id, signal);
    },
    clean: (tag, signal) => bucket.delete(keyOf(names.image(tag)), signal),
  });
  return {
    store,
    parts: {
      image,
      object: {
        async list(signal) {
          const begun = (await bucket.begun("npimage-", signal)).map(([key]) => key);
          const keys = new Set([...(await bucket.keys("npimage-", signal)), ...begun]);
          return tagged([...keys].map((key) => [key, key] as const));
        },
        delete: (key, signal) => bucket.delete(key, signal),
      },
    },
  };
}
