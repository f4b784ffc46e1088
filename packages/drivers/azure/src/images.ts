import {
  DriverError,
  hashOf,
  type ImageStore,
  type ImageTag,
  imageMetadata,
  imageSteps,
  keepSecret,
  type OpenFile,
  orThrow,
  type Piece,
  sentPieces,
  type UploadOrder,
} from "@nodeyard/driver";
import type { AzureAccount } from "./account.ts";
import type { AzureProviderConfig } from "./config.ts";
import { removeDisk } from "./parts.ts";
import type { AzureResource } from "./resources.ts";

/** Bytes of one write, the most that Azure takes; a page of a disk; the end of a VHD. */
const PIECE = 4 << 20;
const PAGE = 512;
const FOOTER = 512;
const MIB = 1 << 20;
const EMPTY = Buffer.alloc(PAGE);
/** Writes at the same time, and between two checkpoints: after a crash at most 64 MiB are sent again. */
const PARALLEL = 8;
const STRETCH = 16;
/** Seconds for which a disk can be written to: the longest that Azure allows. */
const ACCESS_S = 86_400;

/**
 * Uploads of fixed VHDs: a disk is made and written to by pages, of which only those with data are sent, and an image is made of it. The
 * names of both follow from the tag, so an upload that was interrupted finds what it made. The id of an image is its name.
 */
export function imageStore(
  account: AzureAccount,
  { own }: AzureProviderConfig,
  openFile: OpenFile,
): ImageStore {
  const imageOf = (name: string) => account.path("images", name);
  const diskOf = (name: string) => account.path("disks", name);
  const bodyOf = ({ metadata, tag }: UploadOrder, properties: object) => ({
    ...{ location: own.location, tags: { ...metadata, ...imageMetadata(tag) }, properties },
  });

  /** Writes what has data. Access ends when all pages have arrived. */
  async function* written(
    name: string,
    order: UploadOrder,
    from: number,
    signal: AbortSignal,
  ): AsyncGenerator<number> {
    const access = { access: "Write", durationInSeconds: ACCESS_S };
    const begin = `${diskOf(name)}/beginGetAccess`;
    type Access = { accessSAS?: string; AccessSAS?: string };
    const granted = await account.whole<Access>("POST", begin, access, signal);
    const why = `Azure gave no address to write disk ${name} to`;
    const url = orThrow(granted?.accessSAS ?? granted?.AccessSAS, why, "transient");
    keepSecret(new URL(url).searchParams.get("sig"));
    yield* sentPieces({
      ...{ openFile, order, length: PIECE, from, parallel: PARALLEL, stretch: STRETCH, dataOf },
      send: (range) => account.putPages(url, range, signal),
    });
    await account.whole("POST", `${diskOf(name)}/endGetAccess`, {}, signal);
  }

  return imageSteps<AzureResource>({
    ...{ clock: account.clock, formats: ["vhd"], uploadMs: own.imageUploadTimeoutMs },
    idOf: ({ name }) => name,
    read: (name, signal) => account.get(imageOf(name), signal),
    async find(tag, signal) {
      const name = nameOf(tag);
      const made = await account.get<AzureResource>(imageOf(name), signal);
      if (made?.properties.provisioningState === "Succeeded") return [made];
      // An image that failed is made again of the disk, if that is there.
      return [(await account.get<AzureResource>(diskOf(name), signal)) ?? made];
    },
    stateOf({ id, properties: { provisioningState = "without a state" } }) {
      if (!/\/images\/[^/]+$/i.test(id)) return "open";
      // It may be read from a place that has not heard of the operation's end.
      if (/^(Creating|Updating)$/.test(provisioningState)) return "busy";
      return provisioningState === "Succeeded" ? "ready" : `is ${provisioningState}`;
    },
    async create(order, signal) {
      if ((order.size - FOOTER) % MIB !== 0)
        throw new DriverError(
          "configuration",
          `${order.file} has ${order.size} bytes, and Azure takes only whole MiB with a footer: a fixed VHD`,
        );
      const name = nameOf(order.tag);
      const creationData = { createOption: "Upload", uploadSizeBytes: order.size };
      const body = bodyOf(order, { ...settingsOf(order.own), creationData });
      await account.whole("PUT", diskOf(name), { ...body, sku: { name: "Standard_LRS" } }, signal);
      return name;
    },
    async *send(name, order, from, signal) {
      const disk = await account.get<AzureResource>(diskOf(name), signal);
      if (disk?.properties.diskState !== "Unattached") yield* written(name, order, from, signal);
      const { osType, hyperVGeneration } = settingsOf(order.own);
      const sizes = [...(await account.sizes.all(signal)).values()];
      const osDisk = { osType, osState: "Generalized", managedDisk: { id: account.root + diskOf(name) } };
      // An image is kept in all zones, where there are any.
      const zoneResilient = sizes.some(({ zones }) => zones.length > 0);
      const body = bodyOf(order, { hyperVGeneration, storageProfile: { osDisk, zoneResilient } });
      await account.whole("PUT", imageOf(name), body, signal);
    },
    delete: (name, signal) => account.gone(imageOf(name), signal),
    clean: (tag, signal) => removeDisk(account, diskOf(nameOf(tag)), signal),
  });
}

/** The driver's part of a `diskimages` entry; uploads of entries that have left have none. */
function settingsOf(own: unknown) {
  const { osType = "Linux", hyperVGeneration = "V2" } = (own ?? {}) as Readonly<Record<string, string>>;
  return { osType, hyperVGeneration };
}

/** What is unique in a resource group, where installations may have images of one name. */
function nameOf(tag: ImageTag): string {
  const { installation, provider, image, buildId, uploadId } = tag;
  const whose = hashOf([installation, provider, image, buildId, uploadId]);
  return `${image.replaceAll(/[^\w.-]/g, "-").slice(0, 50)}-${uploadId}-${whose.slice(0, 10)}`;
}

/** From the first page of a piece with data to its last one; undefined: it has none, and the disk reads as zeros there. */
function dataOf({ index, bytes }: Piece) {
  const isEmpty = (at: number) => EMPTY.equals(bytes.subarray(at, at + PAGE));
  let [from, to] = [0, bytes.byteLength];
  while (from < to && isEmpty(from)) from += PAGE;
  while (to > from && isEmpty(to - PAGE)) to -= PAGE;
  return from === to ? undefined : { start: index * PIECE + from, bytes: bytes.subarray(from, to) };
}
