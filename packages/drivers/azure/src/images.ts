import { createHash } from "node:crypto";
import {
  CALL_MS,
  DriverError,
  type ExternalId,
  type ImageStore,
  type ImageTag,
  imageMetadata,
  inParallel,
  keepSecret,
  type OpenFile,
  type Piece,
  pieces,
  type Step,
  type StepContext,
  streamed,
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

type Steps<T> = AsyncGenerator<Step, T, void>;

/**
 * Uploads of fixed VHDs: a disk is made and written to by pages, of which only those with data are sent, and an image is made of it. The
 * names of both follow from the tag, so an upload that was interrupted finds what it made. The id of an image is its name.
 */
export function imageStore(
  account: AzureAccount,
  { own }: AzureProviderConfig,
  openFile: OpenFile,
): ImageStore {
  const { arm, root } = account;
  const pathsOf = (tag: ImageTag) => {
    const name = nameOf(tag);
    return { name, image: account.path("images", name), disk: account.path("disks", name) };
  };

  async function* upload(order: UploadOrder, { signal, externalId }: StepContext): Steps<ExternalId> {
    if ((order.size - FOOTER) % MIB !== 0)
      throw new DriverError(
        "configuration",
        `${order.file} has ${order.size} bytes, and Azure takes only whole MiB with a footer: a fixed VHD`,
      );
    const { name, image, disk } = pathsOf(order.tag);
    const common = { location: own.location, tags: { ...order.metadata, ...imageMetadata(order.tag) } };
    yield { step: "find", deadlineMs: CALL_MS };
    const made = await arm.get<AzureResource>(image, signal);
    if (made?.properties.provisioningState !== "Succeeded") {
      const state = (await arm.get<AzureResource>(disk, signal))?.properties.diskState;
      if (state === undefined) {
        yield { step: "disk", deadlineMs: CALL_MS };
        const creationData = { createOption: "Upload", uploadSizeBytes: order.size };
        const { osType, hyperVGeneration } = settingsOf(order.own);
        const properties = { osType, hyperVGeneration, creationData };
        await arm.whole("PUT", disk, { ...common, properties, sku: { name: "Standard_LRS" } }, signal);
      }
      // Access ends when all pages have arrived.
      if (state !== "Unattached") yield* writePages(order, name, disk, externalId, signal);
      yield { step: "image", deadlineMs: own.uploadMs, save: { externalId: name } };
      await arm.whole(
        "PUT",
        image,
        { ...common, properties: await imageProperties(order, disk, signal) },
        signal,
      );
    }
    yield { step: "disk-delete", deadlineMs: CALL_MS, save: { externalId: name } };
    await removeDisk(account, disk, signal);
    order.progress(order.size);
    return name;
  }

  /** Writes what has data. Pages since the last checkpoint are sent again after a crash, to the same places. */
  async function* writePages(
    order: UploadOrder,
    name: string,
    disk: string,
    externalId: ExternalId | null,
    signal: AbortSignal,
  ): Steps<void> {
    const before =
      typeof externalId === "object" && externalId?.disk === name ? Number(externalId.pieces) || 0 : 0;
    const saved = (count: number) => ({ save: { externalId: { disk: name, pieces: count } } });
    yield { step: "upload", deadlineMs: own.uploadMs, ...saved(before) };
    const access = { access: "Write", durationInSeconds: ACCESS_S };
    const granted = await arm.whole<{ accessSAS?: string; AccessSAS?: string }>(
      ...(["POST", `${disk}/beginGetAccess`, access, signal] as const),
    );
    const url = granted?.accessSAS ?? granted?.AccessSAS;
    if (url === undefined)
      throw new DriverError("transient", `Azure gave no address to write disk ${name} to`);
    keepSecret(new URL(url).searchParams.get("sig"));
    let count = 0;
    async function* withData() {
      for await (const piece of pieces(streamed(openFile, order), PIECE)) {
        const range = dataOf(piece);
        if (range !== undefined && count++ >= before) yield range;
      }
    }
    let last = 0;
    for await (const arrived of inParallel(withData(), PARALLEL, (range) => arm.putPages(url, range, signal)))
      if (arrived - last >= STRETCH) {
        last = arrived;
        yield { step: "upload", deadlineMs: own.uploadMs, ...saved(before + arrived) };
      }
    yield { step: "close", deadlineMs: CALL_MS, ...saved(count) };
    await arm.whole("POST", `${disk}/endGetAccess`, {}, signal);
  }

  /** An image that is kept in all zones, where there are any. */
  async function imageProperties(order: UploadOrder, disk: string, signal: AbortSignal): Promise<object> {
    const { osType, hyperVGeneration } = settingsOf(order.own);
    const sizes = [...(await account.sizes.all(signal)).values()];
    const managedDisk = { id: root + disk };
    return {
      hyperVGeneration,
      storageProfile: {
        osDisk: { osType, osState: "Generalized", managedDisk },
        zoneResilient: sizes.some(({ zones }) => zones.length > 0),
      },
    };
  }

  async function* remove(tag: ImageTag, { signal }: StepContext): Steps<void> {
    const { image, disk } = pathsOf(tag);
    yield { step: "delete", deadlineMs: CALL_MS };
    await removeDisk(account, disk, signal);
    await arm.gone(image, signal);
  }

  return { formats: ["vhd"], upload, remove };
}

/** The driver's part of a `diskimages` entry; uploads of entries that have left have none. */
function settingsOf(own: unknown) {
  const { osType = "Linux", hyperVGeneration = "V2" } = (own ?? {}) as Readonly<Record<string, string>>;
  return { osType, hyperVGeneration };
}

/** What is unique in a resource group, where installations may have images of one name. */
function nameOf(tag: ImageTag): string {
  const { installation, provider, image, buildId, uploadId } = tag;
  const whose = createHash("sha256").update(
    JSON.stringify([installation, provider, image, buildId, uploadId]),
  );
  return `${image.replaceAll(/[^\w.-]/g, "-").slice(0, 50)}-${uploadId}-${whose.digest("hex").slice(0, 10)}`;
}

/** From the first page of a piece with data to its last one; undefined: it has none, and the disk reads as zeros there. */
function dataOf({ index, bytes }: Piece) {
  const isEmpty = (at: number) => EMPTY.equals(bytes.subarray(at, at + PAGE));
  let [from, to] = [0, bytes.byteLength];
  while (from < to && isEmpty(from)) from += PAGE;
  while (to > from && isEmpty(to - PAGE)) to -= PAGE;
  return from === to ? undefined : { start: index * PIECE + from, bytes: bytes.subarray(from, to) };
}
