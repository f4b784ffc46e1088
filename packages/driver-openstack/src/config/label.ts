import type { LabelConfig, LoadContext, Reader } from "@nodeyard/driver";
import type { OpenstackLabelOwn, OpenstackPoolOwn } from "../own.ts";
import { type ImageFacts, type ImageLists, NO_IMAGE } from "./images.ts";

export interface PoolFacts {
  readonly images: ImageLists;
  readonly hostKeyChecking: boolean;
  readonly own: OpenstackPoolOwn;
}

const VOLUME_GB = 50;

export function readLabel(
  from: Reader,
  pool: PoolFacts,
  context: LoadContext,
): LabelConfig<OpenstackLabelOwn> | undefined {
  const name = from.needed("name");
  if (name === undefined) return undefined;
  const { image, facts } = readImage(from, pool.images, context);
  if (!from.has("min-ram") && !from.has("flavor-name"))
    from.warn(undefined, `label ${name} says no size; add min-ram or flavor-name`);
  return {
    name,
    hostKeyChecking: from.flag("host-key-checking", pool.hostKeyChecking),
    connection: facts.connection,
    image,
    own: {
      minRam: from.number("min-ram", 0),
      flavorName: from.text("flavor-name", null),
      cloudImage: facts.cloudImage,
      configDrive: facts.configDrive,
      keyName: from.text("key-name", null),
      consoleLog: from.flag("console-log", false),
      volumeSize: from.flag("boot-from-volume", false) ? from.number("volume-size", VOLUME_GB) : null,
      instanceProperties: texts(from.mapping("instance-properties")),
      dynamicProperties: from.mapping("dynamic-instance-properties") ?? {},
      userData: from.text("userdata", null),
      networks: from.has("networks") ? from.texts("networks") : pool.own.networks,
    },
  };
}

/** With both keys the diskimage is launched, as the old loader does. */
function readImage(
  from: Reader,
  images: ImageLists,
  context: LoadContext,
): { readonly image: LabelConfig["image"]; readonly facts: ImageFacts } {
  const [diskimage, cloudImage] = [from.text("diskimage", null), from.text("cloud-image", null)];
  if (cloudImage !== null && !images.cloudImages.has(cloudImage)) {
    from.error(
      "cloud-image",
      `names ${cloudImage}, which is not in this provider's cloud-images; add it there`,
    );
  }
  if (diskimage !== null) {
    const facts = diskimageFacts(from, diskimage, images, context);
    return { image: { kind: "diskimage", name: diskimage }, facts };
  }
  if (cloudImage === null) return { image: null, facts: NO_IMAGE };
  const facts = images.cloudImages.get(cloudImage) ?? NO_IMAGE;
  return { image: { kind: "cloud-image", name: cloudImage }, facts };
}

function diskimageFacts(from: Reader, name: string, images: ImageLists, context: LoadContext): ImageFacts {
  const top = context.diskimages.get(name);
  const listed = images.diskimages.get(name);
  if (top === undefined) {
    from.error("diskimage", `names ${name}, which is not among the top-level diskimages, or is abstract`);
  } else if (listed === undefined) {
    from.warn(
      "diskimage",
      `names ${name}, which this provider does not list: no upload of it will ever exist`,
    );
  }
  return listed ?? { ...NO_IMAGE, connection: { ...NO_IMAGE.connection, ...top } };
}

/** Metadata is text; what is none in the file is written as JSON has it. */
function texts(mapping: Readonly<Record<string, unknown>> | null): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(mapping ?? {}).map(([key, value]) => [
      key,
      typeof value === "object" ? JSON.stringify(value) : String(value),
    ]),
  );
}
