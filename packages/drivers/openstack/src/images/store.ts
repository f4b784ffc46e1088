import { type ImageStore, imageMetadata, imageSteps, streamed, type UploadOrder } from "@nodeyard/driver";
import type { Image } from "../api/index.ts";
import type { Cloud } from "../clouds/index.ts";
import type { Parts } from "../parts.ts";

/** Images in glance, in the format of clouds.yaml (`image_format`). */
export function glanceStore({ api, cloud, config, clock, openFile }: Parts): ImageStore {
  const { glance, images } = api;
  const uploadMs = config.own.imageUploadTimeoutMs;
  return imageSteps<Image>({
    ...{ clock, uploadMs, stateOf, formats: [cloud.imageFormat] },
    idOf: ({ id }) => id,
    metadataOf: (image) => image,
    find(tag, signal) {
      const { nodepool_build_id = "", nodepool_upload_id = "" } = imageMetadata(tag);
      return images.own(signal, { nodepool_build_id, nodepool_upload_id });
    },
    read: (id, signal) => images.get(id, signal),
    create: async (order, signal) => (await images.create(imageBody(cloud, order), signal)).id,
    // Never repeated: a stream cannot be sent again.
    async send(id, order, _, signal) {
      const headers = { "content-type": "application/octet-stream", "content-length": String(order.size) };
      const sent = { headers, body: streamed(openFile, order), tryMs: uploadMs };
      await glance.send("PUT", `/images/${encodeURIComponent(id)}/file`, signal, sent);
    },
    delete: (id, signal) => images.delete(id, signal),
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
