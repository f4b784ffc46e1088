import {
  type Calls,
  DriverError,
  type ExternalId,
  type ImageStore,
  type ImageTag,
  imageMetadata,
  imageTagOf,
  type Step,
  type StepContext,
  type UploadOrder,
} from "@nodeyard/driver";
import { type Clock, sleep } from "@nodeyard/runtime";
import type { Image, Images } from "../api/image.ts";
import type { Cloud } from "../clouds/index.ts";
import { type OpenFile, streamed } from "./stream.ts";

const CALL_MS = 120_000;
const POLL_MS = 2_000;

/** Uploads to glance: made with our properties in the same call, so that they are found whatever happens next. */
export class GlanceStore implements ImageStore {
  readonly formats: readonly string[];
  readonly #glance: Images;
  readonly #cloud: Cloud;
  readonly #clock: Clock;
  readonly #open: OpenFile;
  readonly #calls: Calls;
  readonly #uploadMs: number;

  constructor(parts: {
    readonly glance: Images;
    readonly cloud: Cloud;
    readonly clock: Clock;
    readonly open: OpenFile;
    readonly calls: Calls;
    readonly uploadMs: number;
  }) {
    this.formats = [parts.cloud.imageFormat];
    this.#glance = parts.glance;
    this.#cloud = parts.cloud;
    this.#clock = parts.clock;
    this.#open = parts.open;
    this.#calls = parts.calls;
    this.#uploadMs = parts.uploadMs;
  }

  upload(order: UploadOrder, context: StepContext): AsyncGenerator<Step, ExternalId, void> {
    return this.#calls.steps("upload", context, (own) => this.#upload(order, own));
  }

  remove(tag: ImageTag, context: StepContext): AsyncGenerator<Step, void, void> {
    return this.#calls.steps("remove image", context, (own) => this.#remove(tag, own));
  }

  async *#upload(order: UploadOrder, { signal }: StepContext): AsyncGenerator<Step, ExternalId, void> {
    yield { step: "find", deadlineMs: CALL_MS };
    let image: Image | undefined;
    for (const one of await this.#of(order.tag, signal)) {
      // glance takes an image's data once and from the start: what was cut off is made anew.
      const whole = one.status === "active" && matches(one, order);
      if (whole && image === undefined) image = one;
      else await this.#glance.delete(one.id, signal);
    }
    if (image !== undefined) {
      order.progress(order.size);
      return image.id;
    }
    yield { step: "image", deadlineMs: CALL_MS };
    const { id } = await this.#glance.create(this.#body(order), signal);
    yield { step: "upload", deadlineMs: this.#uploadMs, save: { externalId: id } };
    const bytes = streamed(this.#open, order.file, order.size, (sent) => order.progress(sent));
    await this.#glance.upload(id, bytes, order.size, this.#uploadMs, signal);
    yield { step: "wait", deadlineMs: this.#uploadMs };
    const ready = await this.#active(id, signal);
    if (matches(ready, order)) return id;
    await this.#glance.delete(id, signal);
    throw new DriverError(
      "transient",
      `image ${id} has another checksum than ${order.file} has (md5 ${ready.checksum}, not ${order.md5})`,
    );
  }

  async *#remove(tag: ImageTag, { signal }: StepContext): AsyncGenerator<Step, void, void> {
    yield { step: "find", deadlineMs: CALL_MS };
    const images = await this.#of(tag, signal);
    for (const { id } of images) {
      yield { step: "delete", deadlineMs: CALL_MS };
      await this.#glance.delete(id, signal);
    }
  }

  /** By two of our properties, and then by all of them: a filter that glance does not know would give everything. */
  async #of(tag: ImageTag, signal: AbortSignal): Promise<readonly Image[]> {
    const { nodepool_build_id, nodepool_upload_id } = imageMetadata(tag);
    const listed = await this.#glance.own(
      { nodepool_build_id: nodepool_build_id!, nodepool_upload_id: nodepool_upload_id! },
      signal,
    );
    return listed.filter((image) => sameUpload(imageTagOf(image), tag));
  }

  #body(order: UploadOrder): object {
    return {
      ...this.#cloud.imageProperties,
      ...order.metadata,
      // What openstacksdk writes, so that its users recognise the image.
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

  async #active(id: string, signal: AbortSignal): Promise<Image> {
    for (;;) {
      const image = await this.#glance.get(id, signal);
      if (image === undefined || ["killed", "deleted", "pending_delete"].includes(image.status))
        throw new DriverError("transient", `image ${id} is ${image?.status ?? "gone"} after its upload`);
      if (image.status === "active") return image;
      await sleep(this.#clock, POLL_MS, signal);
    }
  }
}

/** glance tells an MD5 where FIPS rules allow one, and always a hash of a kind that it names. */
function matches(image: Image, { md5, sha256, size }: UploadOrder): boolean {
  if (image.size != null && image.size !== size) return false;
  if (image.os_hash_algo === "sha256" && image.os_hash_value != null) return image.os_hash_value === sha256;
  return image.checksum == null || image.checksum === md5;
}

function sameUpload(a: ImageTag | null, b: ImageTag): boolean {
  return (
    a !== null &&
    a.installation === b.installation &&
    a.provider === b.provider &&
    a.image === b.image &&
    a.buildId === b.buildId &&
    a.uploadId === b.uploadId
  );
}
