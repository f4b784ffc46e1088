import {
  type ImageLists,
  type LoadContext,
  type Reader,
  readImageLists,
  readMetadata,
} from "@nodeyard/driver";

/** Properties of an image, as far as a fake cloud reads them. */
export type Properties = Readonly<Record<string, string>>;

export function readImages(provider: Reader, context: LoadContext): ImageLists<Properties> {
  return readImageLists<Properties>(provider, context, {
    cloudImage: () => ({}),
    diskimage: (from) => readMetadata(from, "meta"),
  });
}
