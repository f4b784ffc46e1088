import {
  bucketAt,
  type CloudPart,
  elementsIn,
  imageSteps,
  type OpenFile,
  partedFiles,
} from "@nodeyard/driver";
import type { Image, Site } from "./lookups.ts";

/** An image by the name that its upload gives it, which proves its tag; its id is IBM's, once lists show it. */
type Upload = Pick<Image, "name"> & Partial<Image>;

/** Images of the account, by way of the bucket, and what of them is left over. Without a bucket there is no store. */
export function imagesOf({ config: { own }, ibm, clock, names, lookups }: Site, openFile: OpenFile) {
  const image: CloudPart = {
    async list(signal) {
      const all = await ibm.list<Image>("images", signal, { visibility: "private" });
      return all.map(({ id, name }) => ({ id, imageTag: names.imageTag(name) }));
    },
    delete: (id, signal) => ibm.one<void>("DELETE", "images", id, signal),
  };
  if (own.objectStorage === null) return { store: undefined, parts: { image } };
  const { endpoint, bucketName } = own.objectStorage;
  const bucket = bucketAt(ibm.objects, `${endpoint.replace(/\/+$/, "")}/${bucketName}`);
  const mine = { prefix: "npimage-", tagOf: (key: string) => names.imageTag(key) };
  const files = partedFiles(bucket.store, openFile, mine);
  /** Where VPC finds an object: the location without its class, as in `us-south-smart`. */
  const hrefOf = async (key: string, signal: AbortSignal) => {
    const text = await bucket.read("", { location: "" }, "LocationConstraint", signal);
    const [location = ""] = elementsIn(text, "LocationConstraint");
    return `cos://${location.replace(/-[^-]+$/, "")}/${bucketName}/${key}`;
  };
  const keyOf = (name: string) => `${name}.${own.imageFormat}`;
  const named = (name: string, signal: AbortSignal) => ibm.named<Image>("images", name, signal);
  const store = imageSteps<Upload>({
    ...{ clock, formats: [own.imageFormat], uploadMs: own.imageUploadTimeoutMs },
    idOf: ({ name }) => name,
    externalIdOf: ({ id = "" }) => id,
    find: async (tag, signal) => [await named(names.image(tag), signal)],
    // Lists show a new one late; the step has a limit.
    read: async (name, signal) => (await named(name, signal)) ?? { name, status: "pending" },
    stateOf({ status = "", status_reasons: [reason] = [] }) {
      if (status === "available") return "ready";
      if (status === "pending") return "busy";
      return `is ${status}: ${reason?.message ?? ""} (${reason?.code ?? "no reason is given"})`;
    },
    create: async ({ tag }) => names.image(tag),
    async *send(name, order, _, signal) {
      const key = keyOf(name);
      if (!(await files.has(key, signal))) yield* files.put(key, order, signal);
      const body = {
        name,
        resource_group: await lookups.group(names.group(null), signal),
        file: { href: await hrefOf(key, signal) },
        operating_system: { name: own.systems.get(order.tag.image) ?? "" },
      };
      await ibm.make("images", body, signal);
    },
    async delete(name, signal) {
      const found = await named(name, signal);
      if (found !== undefined) await image.delete(found.id, signal);
    },
    clean: (tag, signal) => files.delete(keyOf(names.image(tag)), signal),
  });
  return { store, parts: { image, object: files.part } };
}
