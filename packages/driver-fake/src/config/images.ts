import { type Connection, type LoadContext, type Reader, readConnection } from "@nodeyard/driver";

export interface Image {
  readonly connection: Connection;
  readonly properties: Readonly<Record<string, string>>;
}

/** The images that a provider lists, by name. */
export interface Images {
  readonly cloudImages: ReadonlyMap<string, Image>;
  readonly diskimages: ReadonlyMap<string, Image>;
}

export function readImages(provider: Reader, context: LoadContext): Images {
  const cloudImages = new Map<string, Image>();
  for (const from of provider.mappings("cloud-images")) {
    const name = from.needed("name");
    if (name === undefined) continue;
    const connection = {
      username: from.text("username", null),
      pythonPath: from.text("python-path", "auto"),
      shellType: from.text("shell-type", null),
      ...readConnection(from),
    };
    cloudImages.set(name, { connection, properties: {} });
  }
  return { cloudImages, diskimages: readDiskimages(provider, context) };
}

function readDiskimages(provider: Reader, context: LoadContext): ReadonlyMap<string, Image> {
  const images = new Map<string, Image>();
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
    const meta = Object.entries(from.mapping("meta") ?? {}).map(
      ([key, value]) => [key, typeof value === "object" ? JSON.stringify(value) : String(value)] as const,
    );
    images.set(name, {
      connection: { ...top, ...readConnection(from) },
      properties: Object.fromEntries(meta),
    });
  }
  return images;
}
