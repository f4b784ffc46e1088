import {
  type ImageLists,
  type LabelConfig,
  type LoadContext,
  type PoolDefaults,
  type Reader,
  readLabelImage,
  readMetadata,
} from "@nodeyard/driver";
import type { OpenstackLabelOwn, OpenstackPoolOwn } from "../own.ts";
import { type ImageFacts, NO_IMAGE } from "./images.ts";

const VOLUME_GB = 50;

export function readLabel(
  from: Reader,
  images: ImageLists<ImageFacts>,
  pool: PoolDefaults<OpenstackPoolOwn>,
  context: LoadContext,
): LabelConfig<OpenstackLabelOwn> | undefined {
  const name = from.needed("name");
  if (name === undefined) return undefined;
  const { image, connection, own } = readLabelImage(from, images, context, NO_IMAGE);
  if (!from.has("min-ram") && !from.has("flavor-name"))
    from.warn(undefined, `label ${name} has no size; add min-ram or flavor-name`);
  return {
    name,
    hostKeyChecking: from.flag("host-key-checking", pool.hostKeyChecking),
    connection,
    consoleLog: from.flag("console-log", false),
    image,
    own: {
      ...own,
      minRam: from.number("min-ram", 0),
      flavorName: from.text("flavor-name", null),
      keyName: from.text("key-name", null),
      volumeSize: from.flag("boot-from-volume", false) ? from.number("volume-size", VOLUME_GB) : null,
      instanceProperties: readMetadata(from, "instance-properties"),
      dynamicProperties: from.mapping("dynamic-instance-properties") ?? {},
      userData: from.text("userdata", null),
      networks: from.has("networks") ? from.texts("networks") : pool.own.networks,
    },
  };
}
