import {
  type ImageStore,
  imageMetadata,
  imageSteps,
  type OpenFile,
  streamed,
  type UploadOrder,
} from "@nodeyard/driver";
import type { Clock } from "@nodeyard/runtime";
import type { Image, Images } from "../api/image.ts";
import type { Cloud } from "../clouds/index.ts";

interface StoreParts {
  readonly glance: Images;
  readonly cloud: Cloud;
  readonly clock: Clock;
  readonly openFile: OpenFile;
  /** Time limit of one upload, milliseconds. */
  readonly uploadMs: number;
}

/** Images in glance, in the format of clouds.yaml (`image_format`). */
export function glanceStore({ glance, cloud, clock, openFile, uploadMs }: StoreParts): ImageStore {
  return imageSteps<Image>({
    ...{ clock, uploadMs, formats: [cloud.imageFormat] },
    idOf: ({ id }) => id,
    metadataOf: (image) => image,
    find(tag, signal) {
      const { nodepool_build_id = "", nodepool_upload_id = "" } = imageMetadata(tag);
      return glance.own({ nodepool_build_id, nodepool_upload_id }, signal);
    },
    read: (id, signal) => glance.get(id, signal),
    stateOf,
    create: async (order, signal) => (await glance.create(imageBody(cloud, order), signal)).id,
    send: (id, order, _, signal) =>
      glance.upload(id, streamed(openFile, order), order.size, uploadMs, signal),
    delete: (id, signal) => glance.delete(id, signal),
  });
}

/**
 * glance accepts data only once and from its start, so an image without all of it is of no use to another attempt. glance does not know the file's
 * checksum, so only this comparison finds damaged data: an MD5 only where FIPS rules allow it, and always a hash with its algorithm.
 */
function stateOf(image: Image, { file, md5, sha256, size }: UploadOrder, isSent: boolean): string {
  const isWorking = isSent && !["killed", "deleted", "pending_delete"].includes(image.status);
  if (image.status !== "active") return isWorking ? "busy" : `is ${image.status}`;
  if (image.size != null && image.size !== size) return `has ${image.size} bytes, not ${size}`;
  if (image.os_hash_algo === "sha256" && image.os_hash_value != null)
    return image.os_hash_value === sha256 ? "ready" : `has another checksum than ${file} has`;
  if (image.checksum == null || image.checksum === md5) return "ready";
  return `has another checksum than ${file} has (md5 ${image.checksum}, not ${md5})`;
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
