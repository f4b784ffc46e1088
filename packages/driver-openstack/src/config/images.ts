import { type ImageLists, type LoadContext, type Reader, readImageLists } from "@nodeyard/driver";
import type { OpenstackLabelOwn } from "../own.ts";

/** What a label gets from the image that it names. */
export type ImageFacts = Pick<OpenstackLabelOwn, "cloudImage" | "configDrive">;

export const NO_IMAGE: ImageFacts = { cloudImage: null, configDrive: null };

export function readImages(provider: Reader, context: LoadContext): ImageLists<ImageFacts> {
  return readImageLists<ImageFacts>(provider, context, {
    cloudImage: (from) => {
      const id = from.text("image-id", null);
      const cloudImage = id === null ? { name: from.text("image-name", from.text("name", "")) } : { id };
      return { cloudImage, configDrive: readConfigDrive(from) };
    },
    diskimage: (from) => ({ cloudImage: null, configDrive: readConfigDrive(from) }),
  });
}

function readConfigDrive(from: Reader): boolean | null {
  return from.has("config-drive") ? from.flag("config-drive", false) : null;
}
