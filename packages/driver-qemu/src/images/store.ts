import {
  type Calls,
  DriverError,
  type ExternalId,
  type ImageStore,
  type ImageTag,
  type Step,
  type StepContext,
  type UploadOrder,
} from "@nodeyard/driver";
import type { HostFolder } from "../edge/host-folder.ts";
import { imageName } from "../names.ts";

const STEP_MS = 60_000;
const UPLOAD_MS = 3_600_000;

/** Images on this host. The upload's name is its whole tag, so the id can be made again by whoever knows the tag. */
export class HostImages implements ImageStore {
  readonly formats: readonly string[] = ["qcow2", "raw"];
  readonly #host: HostFolder;
  readonly #calls: Calls;

  constructor(host: HostFolder, calls: Calls) {
    this.#host = host;
    this.#calls = calls;
  }

  upload(order: UploadOrder, context: StepContext): AsyncGenerator<Step, ExternalId, void> {
    return this.#calls.steps("upload", context, (own) => this.#upload(order, own));
  }

  remove(tag: ImageTag, context: StepContext): AsyncGenerator<Step, void, void> {
    return this.#calls.steps("remove image", context, () => this.#remove(tag));
  }

  async *#upload(order: UploadOrder, { signal }: StepContext): AsyncGenerator<Step, ExternalId, void> {
    const name = imageName(order.tag);
    if (!this.formats.includes(order.format))
      throw new DriverError(
        "configuration",
        `images of format ${order.format} cannot be booted by QEMU here`,
      );
    yield { step: "upload", deadlineMs: UPLOAD_MS, save: { externalId: name } };
    if ((await this.#host.uploads.get(name)) === undefined) await this.#host.uploads.add(name, order, signal);
    order.progress(order.size);
    return name;
  }

  async *#remove(tag: ImageTag): AsyncGenerator<Step, void, void> {
    yield { step: "delete", deadlineMs: STEP_MS };
    await this.#host.removeImage(tag);
  }
}
