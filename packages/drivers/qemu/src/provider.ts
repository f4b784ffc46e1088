import {
  DriverError,
  type ExternalId,
  type ImageTag,
  type Provider,
  provide,
  type Step,
  type UploadOrder,
} from "@nodeyard/driver";
import type { HostFolder } from "./edge/host-folder.ts";
import { mapError } from "./errors.ts";
import { needOf } from "./machine/amounts.ts";
import { imageName, nodeName } from "./names.ts";
import { createSteps, removeSteps } from "./steps.ts";

/** Time limit of removing an image, milliseconds. */
const STEP_MS = 60_000;
/** Time limit of copying an image and of its checksum, milliseconds. */
const UPLOAD_MS = 3_600_000;
/** Formats that QEMU can boot. */
const FORMATS: readonly string[] = ["qcow2", "raw"];

/** The machines of a folder on this host. The provider keeps no state: all state is in the folder. */
export function qemuProvider(host: HostFolder): Provider {
  return provide(
    host.config.name,
    {
      place: () => ({ folder: host.config.own.folder }),
      offers: {
        console: { read: async (tag) => (await host.nodes.console(nodeName(tag))) ?? null },
        images: {
          formats: FORMATS,
          upload: (order, { signal }) => upload(host, order, signal),
          remove: (tag) => removeImage(host, tag),
        },
      },
      create: (order, context) => createSteps(host, order, context),
      remove: (tag, context) => removeSteps(host, tag, context),
      async find(tag) {
        const name = nodeName(tag);
        return (await host.nodes.has(name)) ? name : undefined;
      },
      async list() {
        const [machines, images] = await Promise.all([host.machines(), host.images()]);
        return [...machines, ...images];
      },
      /** A leaked machine is ended first: QEMU outlives its launcher. An image goes although machines boot from it, as they have links. */
      async removeResource({ tag, imageTag }, signal) {
        if (tag !== null) {
          await host.stop(nodeName(tag), signal);
          await host.discard(nodeName(tag));
        } else if (imageTag != null) await host.removeImage(imageTag);
      },
      quota: () => host.quota(),
      need: async (label) => needOf(label),
      close: () => host.close(),
    },
    mapError,
  );
}

/** The upload's name is its whole tag, so the id follows from the tag. */
async function* upload(
  host: HostFolder,
  order: UploadOrder,
  signal: AbortSignal,
): AsyncGenerator<Step, ExternalId, void> {
  const name = imageName(order.tag);
  if (!FORMATS.includes(order.format))
    throw new DriverError("configuration", `images of format ${order.format} cannot be booted by QEMU here`);
  yield { step: "upload", deadlineMs: UPLOAD_MS, save: { externalId: name } };
  // A complete upload has been checked already; an incomplete one is made anew.
  if ((await host.uploads.get(name)) === undefined) await host.addImage(name, order, signal);
  order.progress(order.size);
  return name;
}

async function* removeImage(host: HostFolder, tag: ImageTag): AsyncGenerator<Step, void, void> {
  yield { step: "delete", deadlineMs: STEP_MS };
  await host.removeImage(tag);
}
