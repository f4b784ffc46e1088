import { Key, MAPPING, Reader } from "@nodeyard/driver";
import type { UploadSettings } from "../types.ts";

/** `meta` of one driver is `tags` of another: both are metadata of the image in the cloud. */
const tags = () => Key.field("", {}, MAPPING, Key.readStrings);

/** What a builder reads of providers, whose drivers judge them. */
const providersSection = Key.section({
  providers: Key.entries(
    Key.section({
      name: Key.text("", { default: "" }),
      ...Key.uploadTable,
      diskimages: Key.entries(Key.section({ ...Key.uploadedImageTable, meta: tags(), tags: tags() }), "", {
        nullable: true,
      }),
    }),
    "",
    { nullable: true },
  ),
});

/** Where images go, by provider. Reports nothing: drivers judge these keys. A provider without `diskimages` has an empty list. */
export function compileUploads(raw: Reader["raw"]): ReadonlyMap<string, UploadSettings> {
  const { providers } = providersSection.read(new Reader(raw, [], () => {}))!;
  return new Map(
    providers.map(({ name, nameFormat, postUploadHook, diskimages }) => [
      name,
      {
        nameFormat,
        postUploadHook,
        images: new Map(
          diskimages.map((image) => [
            image.name,
            { paused: image.pause, metadata: { ...image.meta, ...image.tags }, own: image.at.raw },
          ]),
        ),
      },
    ]),
  );
}
