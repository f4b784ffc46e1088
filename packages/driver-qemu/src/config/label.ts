import {
  type ImageLists,
  type LabelConfig,
  type LoadContext,
  type Reader,
  readLabelImage,
} from "@nodeyard/driver";
import type { QemuLabelOwn } from "../own.ts";
import { type ImageFacts, NO_IMAGE } from "./images.ts";
import { readKeys } from "./keys.ts";

/** Undefined after an error: a machine without an image boots nothing. */
export function readLabel(
  from: Reader,
  images: ImageLists<ImageFacts>,
  authorizedKeys: readonly string[],
  context: LoadContext,
): LabelConfig<QemuLabelOwn> | undefined {
  const name = from.needed("name");
  const found = readImage(from, images, context);
  if (name === undefined || found === undefined) return undefined;
  const seed = from.text("seed", "nocloud");
  if (seed !== "nocloud" && seed !== "fw_cfg") {
    from.error("seed", `is ${seed}; write nocloud or fw_cfg`);
    return undefined;
  }
  return {
    name,
    hostKeyChecking: from.flag("host-key-checking", true),
    connection: found.connection,
    consoleLog: from.flag("console-log", false),
    image: found.image,
    own: {
      file: found.own.file,
      boot: found.own.boot,
      cores: amount(from, "cores", 1),
      ram: amount(from, "ram", 1024),
      disk: amount(from, "disk", 10),
      seed,
      savedState: from.flag("saved-state", false),
      authorizedKeys: from.has("authorized-keys") ? readKeys(from) : authorizedKeys,
      userData: from.text("userdata", null),
    },
  };
}

function readImage(
  from: Reader,
  images: ImageLists<ImageFacts>,
  context: LoadContext,
): ReturnType<typeof readLabelImage<ImageFacts>> | undefined {
  if (from.has("diskimage") !== from.has("cloud-image"))
    return readLabelImage(from, images, context, NO_IMAGE);
  from.error(undefined, "needs exactly one of diskimage and cloud-image");
  return undefined;
}

function amount(from: Reader, key: string, missing: number): number {
  const value = from.number(key, missing);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  from.error(key, `is ${value}; write a whole number from 1 on`);
  return missing;
}
