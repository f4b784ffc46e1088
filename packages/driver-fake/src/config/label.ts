import type { LabelConfig, LoadContext, Reader } from "@nodeyard/driver";
import type { FakeLabelOwn } from "../own.ts";
import type { Image, Images } from "./images.ts";

/** What the old fake's flavors have: `Fake Flavor` and `Unreal Flavor` alike. */
const FLAVOR = { cores: 4, ram: 8192 };

export interface PoolFacts {
  readonly images: Images;
  readonly hostKeyChecking: boolean;
}

export function readLabel(
  from: Reader,
  pool: PoolFacts,
  context: LoadContext,
): LabelConfig<FakeLabelOwn> | undefined {
  const name = from.needed("name");
  if (name === undefined) return undefined;
  const { image, facts } = readImage(from, pool.images, context);
  return {
    name,
    hostKeyChecking: from.flag("host-key-checking", pool.hostKeyChecking),
    connection: facts.connection,
    consoleLog: from.flag("console-log", false),
    image,
    own: {
      cores: FLAVOR.cores,
      ram: Math.max(FLAVOR.ram, from.number("min-ram", 0)),
      imageProperties: facts.properties,
    },
  };
}

const noImage: Image = {
  connection: { username: null, pythonPath: "auto", shellType: null, type: "ssh", port: 22 },
  properties: {},
};

/** With both keys the diskimage is launched, as the old loader does. */
function readImage(
  from: Reader,
  images: Images,
  context: LoadContext,
): { readonly image: LabelConfig["image"]; readonly facts: Image } {
  const [diskimage, cloudImage] = [from.text("diskimage", null), from.text("cloud-image", null)];
  if (cloudImage !== null && !images.cloudImages.has(cloudImage)) {
    from.error(
      "cloud-image",
      `names ${cloudImage}, which is not in this provider's cloud-images; add it there`,
    );
  }
  if (diskimage !== null) {
    const top = context.diskimages.get(diskimage);
    if (top === undefined) {
      from.error(
        "diskimage",
        `names ${diskimage}, which is not among the top-level diskimages, or is abstract`,
      );
    } else if (!images.diskimages.has(diskimage)) {
      from.warn(
        "diskimage",
        `names ${diskimage}, which this provider does not list: no upload of it will ever exist`,
      );
    }
    const listed = images.diskimages.get(diskimage);
    const facts = listed ?? { ...noImage, connection: { ...noImage.connection, ...top } };
    const unlisted = listed === undefined ? { listed: false } : {};
    return { image: { kind: "diskimage", name: diskimage, ...unlisted }, facts };
  }
  if (cloudImage === null) return { image: null, facts: noImage };
  return {
    image: { kind: "cloud-image", name: cloudImage },
    facts: images.cloudImages.get(cloudImage) ?? noImage,
  };
}
