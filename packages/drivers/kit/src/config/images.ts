import { connectionKeys, loginKeys, withPort } from "./common-keys.ts";
import type { Connection, LabelConfig } from "./compiled.ts";
import type { LoadContext } from "./driver-config.ts";
import type { Field } from "./field.ts";
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
  /** The driver's part of a label without a listed image. */
  readonly none: Own;
  readonly oneNeeded: true | "validator" | undefined;
}

/** Connection of a label without an image, or with one that no list of the provider has. */
export const NO_CONNECTION: Connection = {
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

/** Time limit of an upload. */
export const uploadLimit = (description: string) =>
  seconds(description, { default: 3600, like: ABOVE_0 }).as("imageUploadTimeoutMs");

/** Keys of a provider that accepts uploads. */
export const uploadKeys = {
  ...unread(uploadTable),
  "image-upload-timeout": uploadLimit("For one upload."),
};

/** The keys of a driver for the lists of images. */
export interface ImageTables<D, C> {
  readonly diskimage: D;
  readonly cloudImage: C;
  /** Description of `cloud-images`. */
  readonly listed?: string;
  readonly rules?: readonly Rule[];
  /** Only the loader wants the `name` of an entry of `cloud-images`. */
  readonly named?: "loader";
  /** A note on the keys of uploads, where Nodepool takes none for this cloud. */
  readonly uploads?: string;
  /**
   * Where a label must have exactly one image: in validator and loader, or only in the validator, by rules of its own. Absent: without one
   * the label is useless, and of two the diskimage counts, as in Nodepool.
   */
  readonly oneNeeded?: true | "validator";
}

const noted = <T>(one: Field<T>, note: string | undefined) => (note === undefined ? one : one.accepted(note));

/** The lists `diskimages` and `cloud-images` of a provider. */
export const imageKeys = ({
  diskimage,
  cloudImage,
  listed = "Images that the cloud has.",
  rules = [],
  named,
  uploads,
}: ImageTables<Table, Table>) => ({
  diskimages: noted(
    entries(
      section({
        ...uploadedImageTable,
        pause: uploadedImageTable.pause.unread(),
        own: group(diskimage),
        connection: group(connectionKeys).map(withPort),
      }),
      "Built images that this provider gets.",
    ),
    uploads,
  ),
  "cloud-images": entries(
    section(
      {
        name: text("Referred to by labels.", { needed: named ?? true }),
        own: group(cloudImage),
        connection: group({ ...loginKeys, ...connectionKeys }).map(withPort),
      },
      ...rules,
    ),
    listed,
  ),
});

/** Keys of a label whose machines boot one image. */
export const labelImageKeys = ({ oneNeeded, uploads }: ImageTables<unknown, unknown>) => {
  const one = oneNeeded !== undefined && "exactly one of this and";
  return {
    diskimage: noted(
      text(`A \`diskimages\` entry of this provider; ${one || "this or"} \`cloud-image\`.`),
      uploads,
    ),
    "cloud-image": text(`A \`cloud-images\` entry of this provider; ${one || "this or"} \`diskimage\`.`),
  };
};

/** What a label says about its image. */
export interface LabelImageKeys {
  readonly name: string;
  readonly diskimage: string | null;
  readonly cloudImage: string | null;
}

/** The lists of images as they are read. */
export interface ProviderImages<D, C> {
  readonly diskimages: readonly Entry<{
    readonly name: string;
    readonly own: D;
    readonly connection: Pick<Connection, "type" | "port">;
  }>[];
  readonly cloudImages: readonly Entry<{ readonly name: string } & ListedImage<C>>[];
}

/** What labels take over from their image, beside the connection. */
export interface ImageFacts<Own, D, C, ProviderOwn> {
  /** Of a label without an image, or with one that the provider does not list. */
  readonly none: Own;
  /** Absent: none. */
  readonly diskimage?: (own: D) => Own;
  readonly cloudImage: (own: C, name: string, provider: ProviderOwn) => Own;
}

/** Compiles the image lists by name. Entries with errors were reported and are left out. */
export function listImages<Own, D, C, ProviderOwn>(
  provider: ProviderImages<D, C> & { readonly own: ProviderOwn },
  context: LoadContext,
  { oneNeeded }: Pick<ImageTables<unknown, unknown>, "oneNeeded">,
  facts: ImageFacts<Own, D, C, ProviderOwn>,
): ImageLists<Own> {
  const diskimages = provider.diskimages.flatMap(({ at, name, connection, own: of }) => {
    const top = context.diskimages.get(name);
    if (top === undefined) reportMissing(at, "name", `diskimage ${name}`);
    if (top === undefined) return [];
    // The provider's entry decides about type and port, the top-level one about the login, unless the entry has `loginKeys`, too.
    const { pythonPath = top.pythonPath, shellType = top.shellType, ...login } = of as Partial<Connection>;
    const username = login.username ?? top.username;
    const own = facts.diskimage?.(of) ?? facts.none;
    return [[name, { connection: { username, pythonPath, shellType, ...connection }, own }] as const];
  });
  const cloudImages = provider.cloudImages.map(({ name, connection, own: of }) => {
    return [name, { connection, own: facts.cloudImage(of, name, provider.own) }] as const;
  });
  return { diskimages: new Map(diskimages), cloudImages: new Map(cloudImages), none: facts.none, oneNeeded };
}

/** The image of a label; undefined after an error. When both keys are set the diskimage wins, as in Nodepool. */
export function labelImage<Own>(
  { at, name, diskimage, cloudImage }: Entry<LabelImageKeys>,
  { none, oneNeeded, ...images }: ImageLists<Own>,
  context: LoadContext,
): (ListedImage<Own> & Pick<LabelConfig, "image">) | undefined {
  if (oneNeeded === true && at.has("diskimage") === at.has("cloud-image")) {
    at.error(undefined, "needs exactly one of diskimage and cloud-image");
    return undefined;
  }
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
  if (cloudImage === null) {
    if (oneNeeded === undefined)
      at.useless(undefined, `label ${name} has no image; add cloud-image or diskimage`);
    return { connection: NO_CONNECTION, own: none, image: null };
  }
  const facts = images.cloudImages.get(cloudImage) ?? { connection: NO_CONNECTION, own: none };
  return { ...facts, image: { kind: "cloud-image", name: cloudImage } };
}

/** An abstract diskimage is only a parent of others; the loader's context does not have it, as it is never built. */
function reportMissing(at: Reader, key: string, name: string): void {
  at.error(key, `names ${name}, which is not among the top-level diskimages, or is abstract`);
}
