import {
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
import { type Clock, sleep } from "@nodeyard/runtime";
import type { Image, Images } from "../api/image.ts";
import type { Cloud } from "../clouds/index.ts";

/** Time limit of a step with one call, with its wait for the rate limit, milliseconds. */
const CALL_MS = 120_000;
/** Pause between two reads of an image that glance still processes, milliseconds. */
const POLL_MS = 2_000;

interface StoreParts {
  readonly glance: Images;
  readonly cloud: Cloud;
  readonly clock: Clock;
  readonly openFile: OpenFile;
  /** Time limit of one upload, milliseconds. */
  readonly uploadMs: number;
}

/**
 * Uploads images to glance. The tag is set in the call that creates the image, so that the image can be found whatever happens
 * next. Formats: the one of clouds.yaml (`image_format`).
 */
export function glanceStore(parts: StoreParts): ImageStore {
  return {
    formats: [parts.cloud.imageFormat],
    upload: (order, context) => upload(parts, order, context),
    remove: (tag, context) => remove(parts, tag, context),
  };
}

/**
 * Uploads an image, or finds the one that an earlier attempt finished. A launcher that dies in between leaves an incomplete
 * image, which the next attempt deletes. Rejects with kind "transient" when glance has other bytes than the file.
 */
async function* upload(
  { glance, cloud, clock, openFile, uploadMs }: StoreParts,
  order: UploadOrder,
  { signal }: StepContext,
): AsyncGenerator<Step, ExternalId, void> {
  yield { step: "find", deadlineMs: CALL_MS };
  let image: Image | undefined;
  for (const one of await imagesOf(glance, order.tag, signal)) {
    // glance accepts data only once and from its start, so an incomplete image is deleted and created again.
    const whole = one.status === "active" && matches(one, order);
    if (whole && image === undefined) image = one;
    else await glance.delete(one.id, signal);
  }
  if (image !== undefined) {
    order.progress(order.size);
    return image.id;
  }
  yield { step: "image", deadlineMs: CALL_MS };
  const { id } = await glance.create(imageBody(cloud, order), signal);
  yield { step: "upload", deadlineMs: uploadMs, save: { externalId: id } };
  await glance.upload(id, streamed(openFile, order), order.size, uploadMs, signal);
  yield { step: "wait", deadlineMs: uploadMs };
  const ready = await active(glance, id, clock, signal);
  // glance does not know the file's checksum, so only this comparison finds damaged data.
  if (matches(ready, order)) return id;
  await glance.delete(id, signal);
  throw new DriverError(
    "transient",
    `image ${id} has another checksum than ${order.file} has (md5 ${ready.checksum}, not ${order.md5})`,
  );
}

/** Deletes all images with the tag; more than one may exist after a lost answer. None is no error. */
async function* remove(
  { glance }: StoreParts,
  tag: ImageTag,
  { signal }: StepContext,
): AsyncGenerator<Step, void, void> {
  yield { step: "find", deadlineMs: CALL_MS };
  for (const { id } of await imagesOf(glance, tag, signal)) {
    yield { step: "delete", deadlineMs: CALL_MS };
    await glance.delete(id, signal);
  }
}

/** Filters by two properties of the tag, then compares the whole tag: glance would ignore an unknown filter and return all images. */
async function imagesOf(glance: Images, tag: ImageTag, signal: AbortSignal): Promise<readonly Image[]> {
  const { nodepool_build_id, nodepool_upload_id } = imageMetadata(tag);
  const listed = await glance.own(
    { nodepool_build_id: nodepool_build_id!, nodepool_upload_id: nodepool_upload_id! },
    signal,
  );
  return listed.filter((image) => {
    const own = imageTagOf(image);
    return own !== null && sameImage(own, tag);
  });
}

/** The body of `POST /v2/images`. Later entries win: the tag over the image's metadata, and that over the vendor's properties. */
function imageBody(cloud: Cloud, order: UploadOrder): object {
  return {
    ...cloud.imageProperties,
    ...order.metadata,
    // Properties that openstacksdk writes, so that its users recognise the image.
    "owner_specified.openstack.md5": order.md5,
    "owner_specified.openstack.sha256": order.sha256,
    "owner_specified.openstack.object": `images/${order.name}`,
    ...imageMetadata(order.tag),
    name: order.name,
    visibility: "private",
    disk_format: order.format,
    container_format: "bare",
  };
}

/** Waits until glance has processed the data. Rejects when the image ends in another state. The step's deadline is the limit. */
async function active(glance: Images, id: string, clock: Clock, signal: AbortSignal): Promise<Image> {
  for (;;) {
    const image = await glance.get(id, signal);
    if (image === undefined || ["killed", "deleted", "pending_delete"].includes(image.status))
      throw new DriverError("transient", `image ${id} is ${image?.status ?? "gone"} after its upload`);
    if (image.status === "active") return image;
    await sleep(clock, POLL_MS, signal);
  }
}

/** Compares checksums. glance reports an MD5 only where FIPS rules allow it, and always a hash with its algorithm. */
function matches(image: Image, { md5, sha256, size }: UploadOrder): boolean {
  if (image.size != null && image.size !== size) return false;
  if (image.os_hash_algo === "sha256" && image.os_hash_value != null) return image.os_hash_value === sha256;
  return image.checksum == null || image.checksum === md5;
}
