import { type Connection, type LoadContext, type Reader, readConnection } from "@nodeyard/driver";
import type { OpenstackLabelOwn } from "../own.ts";

/** What a label gets from the image that it names. */
export interface ImageFacts {
  readonly connection: Connection;
  readonly cloudImage: OpenstackLabelOwn["cloudImage"];
  readonly configDrive: boolean | null;
}

/** The images that a provider lists, by name. */
export interface ImageLists {
  readonly cloudImages: ReadonlyMap<string, ImageFacts>;
  readonly diskimages: ReadonlyMap<string, ImageFacts>;
}

export const NO_IMAGE: ImageFacts = {
  connection: { username: null, pythonPath: "auto", shellType: null, type: "ssh", port: 22 },
  cloudImage: null,
  configDrive: null,
};

export function readImages(provider: Reader, context: LoadContext): ImageLists {
  return { cloudImages: readCloudImages(provider), diskimages: readDiskimages(provider, context) };
}

function readCloudImages(provider: Reader): ReadonlyMap<string, ImageFacts> {
  const images = new Map<string, ImageFacts>();
  for (const from of provider.mappings("cloud-images")) {
    const name = from.needed("name");
    if (name === undefined) continue;
    const id = from.text("image-id", null);
    const connection = {
      username: from.text("username", null),
      pythonPath: from.text("python-path", "auto"),
      shellType: from.text("shell-type", null),
      ...readConnection(from),
    };
    const cloudImage = id === null ? { name: from.text("image-name", name) } : { id };
    images.set(name, { connection, cloudImage, configDrive: readConfigDrive(from) });
  }
  return images;
}

function readDiskimages(provider: Reader, context: LoadContext): ReadonlyMap<string, ImageFacts> {
  const images = new Map<string, ImageFacts>();
  for (const from of provider.mappings("diskimages")) {
    const name = from.needed("name");
    if (name === undefined) continue;
    const top = context.diskimages.get(name);
    if (top === undefined) {
      from.error(
        "name",
        `names diskimage ${name}, which is not among the top-level diskimages, or is abstract`,
      );
      continue;
    }
    const connection = { ...top, ...readConnection(from) };
    images.set(name, { connection, cloudImage: null, configDrive: readConfigDrive(from) });
  }
  return images;
}

function readConfigDrive(from: Reader): boolean | null {
  return from.has("config-drive") ? from.flag("config-drive", false) : null;
}
