import type { LabelConfig, LoadContext, Reader } from "@nodeyard/driver";
import type { QemuLabelOwn } from "../own.ts";
import type { ImageFacts, ImageLists } from "./images.ts";
import { readKeys } from "./keys.ts";

/** Undefined after an error: a machine without an image boots nothing. */
export function readLabel(
  from: Reader,
  images: ImageLists,
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
    connection: found.facts.connection,
    consoleLog: from.flag("console-log", false),
    image: found.image,
    own: {
      file: found.facts.file,
      boot: found.facts.boot,
      cores: amount(from, "cores", 1),
      ram: amount(from, "ram", 1024),
      disk: amount(from, "disk", 10),
      seed,
      authorizedKeys: from.has("authorized-keys") ? readKeys(from) : authorizedKeys,
      userData: from.text("userdata", null),
    },
  };
}

function readImage(
  from: Reader,
  images: ImageLists,
  context: LoadContext,
): { readonly image: NonNullable<LabelConfig["image"]>; readonly facts: ImageFacts } | undefined {
  const [diskimage, cloudImage] = [from.text("diskimage", null), from.text("cloud-image", null)];
  if ((diskimage === null) === (cloudImage === null)) {
    from.error(undefined, "needs exactly one of diskimage and cloud-image");
    return undefined;
  }
  if (cloudImage !== null) {
    const facts = images.cloudImages.get(cloudImage);
    if (facts !== undefined) return { image: { kind: "cloud-image", name: cloudImage }, facts };
    from.error(
      "cloud-image",
      `names ${cloudImage}, which is not in this provider's cloud-images; add it there`,
    );
    return undefined;
  }
  const name = diskimage as string;
  const facts = images.diskimages.get(name);
  if (facts !== undefined) return { image: { kind: "diskimage", name, listed: true }, facts };
  const why = context.diskimages.has(name)
    ? "which this provider does not list; add it to its diskimages"
    : "which is not among the top-level diskimages, or is abstract";
  from.error("diskimage", `names ${name}, ${why}`);
  return undefined;
}

function amount(from: Reader, key: string, missing: number): number {
  const value = from.number(key, missing);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  from.error(key, `is ${value}; write a whole number from 1 on`);
  return missing;
}
