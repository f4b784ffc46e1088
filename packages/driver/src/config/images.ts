import { readConnection } from "./common.ts";
import type { Connection, LabelConfig } from "./compiled.ts";
import type { LoadContext } from "./driver-config.ts";
import type { Reader } from "./reader.ts";

/** An image that a provider lists: how nodes from it are reached, and what only the driver understands. */
export interface ListedImage<Own> {
  readonly connection: Connection;
  readonly own: Own;
}

/** The images that a provider lists, by name. */
export interface ImageLists<Own> {
  readonly cloudImages: ReadonlyMap<string, ListedImage<Own>>;
  readonly diskimages: ReadonlyMap<string, ListedImage<Own>>;
}

const NO_CONNECTION: Connection = {
  username: null,
  pythonPath: "auto",
  shellType: null,
  type: "ssh",
  port: 22,
};

/**
 * `cloud-images` and `diskimages` of a provider (docs/contract/config.md, "Images of a provider"). One for which `own` returns
 * undefined, after it reported why, is left out.
 */
export function readImageLists<Own>(
  provider: Reader,
  context: LoadContext,
  own: {
    readonly cloudImage: (from: Reader) => Own | undefined;
    readonly diskimage: (from: Reader) => Own | undefined;
  },
): ImageLists<Own> {
  const cloudImages = new Map<string, ListedImage<Own>>();
  for (const from of provider.mappings("cloud-images")) {
    const name = from.needed("name");
    if (name === undefined) continue;
    const connection = {
      username: from.text("username", null),
      pythonPath: from.text("python-path", "auto"),
      shellType: from.text("shell-type", null),
      ...readConnection(from),
    };
    const facts = own.cloudImage(from);
    if (facts !== undefined) cloudImages.set(name, { connection, own: facts });
  }
  const diskimages = new Map<string, ListedImage<Own>>();
  for (const from of provider.mappings("diskimages")) {
    const name = from.needed("name");
    if (name === undefined) continue;
    const top = context.diskimages.get(name);
    if (top === undefined) {
      missing(from, "name", `diskimage ${name}`);
      continue;
    }
    const connection = { ...top, ...readConnection(from) };
    const facts = own.diskimage(from);
    if (facts !== undefined) diskimages.set(name, { connection, own: facts });
  }
  return { cloudImages, diskimages };
}

/** What a label boots; `own` is `none` where no listed image says more. With both keys the diskimage is launched, as the old loader does. */
export function readLabelImage<Own>(
  from: Reader,
  images: ImageLists<Own>,
  context: LoadContext,
  none: Own,
): ListedImage<Own> & Pick<LabelConfig, "image"> {
  const [diskimage, cloudImage] = [from.text("diskimage", null), from.text("cloud-image", null)];
  if (cloudImage !== null && !images.cloudImages.has(cloudImage)) {
    from.error(
      "cloud-image",
      `names ${cloudImage}, which is not in this provider's cloud-images; add it there`,
    );
  }
  if (diskimage !== null) {
    const top = context.diskimages.get(diskimage);
    const listed = images.diskimages.get(diskimage);
    if (top === undefined) {
      missing(from, "diskimage", diskimage);
    } else if (listed === undefined) {
      from.warn(
        "diskimage",
        `names ${diskimage}, which this provider does not list: no upload of it will ever exist`,
      );
    }
    const facts = listed ?? { connection: { ...NO_CONNECTION, ...top }, own: none };
    const unlisted = listed === undefined ? { listed: false } : {};
    return { ...facts, image: { kind: "diskimage", name: diskimage, ...unlisted } };
  }
  if (cloudImage === null) return { connection: NO_CONNECTION, own: none, image: null };
  const facts = images.cloudImages.get(cloudImage) ?? { connection: NO_CONNECTION, own: none };
  return { ...facts, image: { kind: "cloud-image", name: cloudImage } };
}

/** Values of a mapping as metadata has them: what is no text in the file is written as JSON has it. */
export function readMetadata(from: Reader, key: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(from.mapping(key) ?? {}).map(([name, value]) => [
      name,
      typeof value === "object" ? JSON.stringify(value) : String(value),
    ]),
  );
}

function missing(from: Reader, key: string, name: string): void {
  from.error(key, `names ${name}, which is not among the top-level diskimages, or is abstract`);
}
