import {
  type ImageLists,
  type LabelConfig,
  type LoadContext,
  type PoolDefaults,
  type Reader,
  readLabelImage,
} from "@nodeyard/driver";
import type { FakeLabelOwn, FakePoolOwn } from "../own.ts";
import type { Properties } from "./images.ts";

/** What the old fake's flavors have: `Fake Flavor` and `Unreal Flavor` alike. */
const FLAVOR = { cores: 4, ram: 8192 };

export function readLabel(
  from: Reader,
  images: ImageLists<Properties>,
  pool: PoolDefaults<FakePoolOwn>,
  context: LoadContext,
): LabelConfig<FakeLabelOwn> | undefined {
  const name = from.needed("name");
  if (name === undefined) return undefined;
  const { image, connection, own: properties } = readLabelImage(from, images, context, {});
  return {
    name,
    hostKeyChecking: from.flag("host-key-checking", pool.hostKeyChecking),
    connection,
    consoleLog: from.flag("console-log", false),
    image,
    own: {
      cores: FLAVOR.cores,
      ram: Math.max(FLAVOR.ram, from.number("min-ram", 0)),
      imageProperties: properties,
    },
  };
}
