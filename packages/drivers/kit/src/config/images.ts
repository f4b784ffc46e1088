import { connectionKeys, loginKeys, withPort } from "./common-keys.ts";
import type { Connection, LabelConfig } from "./compiled.ts";
import type { LoadContext } from "./driver-config.ts";
import type { About } from "./field.ts";
import { ABOVE_0, textLike } from "./grammar.ts";
import type { Reader } from "./reader.ts";
import { group, type Rule, section, type Table, unread } from "./section.ts";
import { type Entry, entries, flag, seconds, text } from "./words.ts";

/** An image in a provider's list: how to connect to its nodes, and the driver's own part. */
interface ListedImage<Own> {
  readonly connection: Connection;
  readonly own: Own;
}

/** The images that a provider lists, by name. */
export interface ImageLists<Own> {
  readonly cloudImages: ReadonlyMap<string, ListedImage<Own>>;
  readonly diskimages: ReadonlyMap<string, ListedImage<Own>>;
}

/** Connection of a label without an image, or with one that no list of the provider has. */
const NO_CONNECTION: Connection = {
  username: null,
  pythonPath: "auto",
  shellType: null,
  type: "ssh",
  port: 22,
};

const NAME_FORMAT = "{image_name}-{timestamp}";
const IMAGE_NAME = textLike(
  "a name with {image_name}, {upload_id} and {timestamp}",
  (format) =>
    !/[{}]/.test(format.replace(/\{\{|\}\}|\{(image_name|upload_id|timestamp)([!:.[][^{}]*)?\}/g, "")),
  [
    [NAME_FORMAT, "ci-{image_name}-{{x}}-{timestamp!s}", ""],
    ["{image}", "{image_name", "{}"],
  ],
);

/** Keys of a provider about uploads. Only the builder reads them. */
export const uploadTable = {
  "post-upload-hook": text("Program run after an upload: provider, image id and file as arguments.")
    .map((program) => program || null)
    .differs("is ended after 30 minutes, and the upload has failed; Nodepool waits without end."),
  "image-name-format": text("Name of an uploaded image.", { default: NAME_FORMAT, like: IMAGE_NAME })
    .as("nameFormat")
    .map((format) => format || NAME_FORMAT),
};

/** The same for an entry of a provider's `diskimages`. */
export const uploadedImageTable = {
  name: text("A top-level diskimage.", { needed: true }),
  pause: flag("No uploads to this provider.", { default: false }),
};

/** Keys of a provider that accepts uploads. */
export const uploadKeys = {
  ...unread(uploadTable),
  "image-upload-timeout": seconds("For one upload.", { default: 3600, like: ABOVE_0 }).as(
    "imageUploadTimeoutMs",
  ),
};

/** The lists `diskimages` and `cloud-images` of a provider, with additional keys of each cloud. */
export const imageKeys = <D extends Table, C extends Table>(
  own: { readonly diskimage: D; readonly cloudImage: C },
  cloudImages: {
    readonly description: string;
    readonly named: NonNullable<About["needed"]>;
    readonly rules?: readonly Rule[];
  },
) => ({
  diskimages: entries(
    section({
      ...uploadedImageTable,
      pause: uploadedImageTable.pause.unread(),
      own: group(own.diskimage),
      connection: group(connectionKeys).map(withPort),
    }),
    "Built images that this provider gets.",
  ),
  "cloud-images": entries(
    section(
      {
        name: text("Referred to by labels.", { needed: cloudImages.named as "loader" }),
        own: group(own.cloudImage),
        connection: group({ ...loginKeys, ...connectionKeys }).map(withPort),
      },
      ...(cloudImages.rules ?? []),
    ),
    cloudImages.description,
  ),
});

/** Keys of a label whose machines boot one image, a built one or one of the provider's list. `own` are those of the driver. */
export const imageLabelKeys = <Own extends Table>(own: Own) => ({
  name: text("A top-level label.", { needed: true }),
  diskimage: text("A `diskimages` entry of this provider; exactly one of this and `cloud-image`."),
  "cloud-image": text("A `cloud-images` entry of this provider; exactly one of this and `diskimage`."),
  own: group(own),
  "console-log": flag("Keep what a machine that does not come up wrote to its console.", { default: false }),
});

/** Whether such a label has its image, which is reported otherwise. */
export function hasOneImage({ at }: Entry<object>): boolean {
  if (at.has("diskimage") !== at.has("cloud-image")) return true;
  at.error(undefined, "needs exactly one of diskimage and cloud-image");
  return false;
}

/** Compiles the image lists by name. Entries with errors were reported and are left out. */
export function compileImages<D, C, Own>(
  provider: {
    readonly diskimages: readonly Entry<{
      readonly name: string;
      readonly own: D;
      readonly connection: Pick<Connection, "type" | "port">;
    }>[];
    readonly cloudImages: readonly Entry<{ readonly name: string } & ListedImage<C>>[];
  },
  context: LoadContext,
  own: { readonly diskimage: (own: D) => Own; readonly cloudImage: (own: C, name: string) => Own },
): ImageLists<Own> {
  const diskimages = provider.diskimages.flatMap(({ at, name, connection, own: of }) => {
    const top = context.diskimages.get(name);
    if (top === undefined) reportMissing(at, "name", `diskimage ${name}`);
    if (top === undefined) return [];
    // The provider's entry decides about type and port, the top-level one about the login, unless the entry has `loginKeys`, too.
    const { pythonPath = top.pythonPath, shellType = top.shellType, ...login } = of as Partial<Connection>;
    const username = login.username ?? top.username;
    return [
      [
        name,
        { connection: { username, pythonPath, shellType, ...connection }, own: own.diskimage(of) },
      ] as const,
    ];
  });
  const cloudImages = provider.cloudImages.map(
    ({ name, connection, own: of }) => [name, { connection, own: own.cloudImage(of, name) }] as const,
  );
  return { diskimages: new Map(diskimages), cloudImages: new Map(cloudImages) };
}

/**
 * The image of a label; `none` is its `own` when no listed image provides it. When both keys are set the diskimage wins, as in Nodepool.
 */
export function labelImage<Own>(
  {
    at,
    diskimage,
    cloudImage,
  }: Entry<{ readonly diskimage: string | null; readonly cloudImage: string | null }>,
  images: ImageLists<Own>,
  context: LoadContext,
  none: Own,
): ListedImage<Own> & Pick<LabelConfig, "image"> {
  if (cloudImage !== null && !images.cloudImages.has(cloudImage))
    at.error(
      "cloud-image",
      `names ${cloudImage}, which is not in this provider's cloud-images; add it there`,
    );
  if (diskimage !== null) {
    const top = context.diskimages.get(diskimage);
    const listed = images.diskimages.get(diskimage);
    if (top === undefined) reportMissing(at, "diskimage", diskimage);
    else if (listed === undefined)
      at.useless(
        "diskimage",
        `names ${diskimage}, which this provider does not list: no upload of it will ever exist`,
      );
    const facts = listed ?? { connection: { ...NO_CONNECTION, ...top }, own: none };
    const unlisted = listed === undefined ? { listed: false } : {};
    return { ...facts, image: { kind: "diskimage", name: diskimage, ...unlisted } };
  }
  if (cloudImage === null) return { connection: NO_CONNECTION, own: none, image: null };
  const facts = images.cloudImages.get(cloudImage) ?? { connection: NO_CONNECTION, own: none };
  return { ...facts, image: { kind: "cloud-image", name: cloudImage } };
}

/** An abstract diskimage is only a parent of others; the loader's context does not have it, as it is never built. */
function reportMissing(at: Reader, key: string, name: string): void {
  at.error(key, `names ${name}, which is not among the top-level diskimages, or is abstract`);
}
