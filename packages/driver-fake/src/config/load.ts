import {
  type LoadContext,
  Reader,
  readCloudPools,
  readCommonProvider,
  readLaunchLimits,
} from "@nodeyard/driver";
import type { FakeProviderConfig } from "../own.ts";
import { readImages } from "./images.ts";
import { readKnobs } from "./knobs.ts";
import { readLabel } from "./label.ts";

/** Compiles a provider mapping; every default of the driver is applied in this folder. */
export function load(raw: Readonly<Record<string, unknown>>, context: LoadContext): FakeProviderConfig {
  const from = new Reader(raw, [], (finding) => context.report(finding));
  const common = readCommonProvider(from, "fake");
  const images = readImages(from, context);
  return {
    ...common,
    pools: readCloudPools(from, common, context, {
      own: (pool) => ({ networks: pool.has("networks") ? pool.texts("networks") : [] }),
      label: (at, pool) => readLabel(at, images, pool, context),
    }),
    ...readLaunchLimits(from),
    own: {
      cloud: from.text("cloud", common.name),
      knobs: readKnobs(from),
      journal: from.inner("fake").text("journal", null),
      ...readImageFolder(from.inner("fake")),
    },
  };
}

function readImageFolder(fake: Reader): Pick<FakeProviderConfig["own"], "images"> {
  if (!fake.has("images")) return {};
  const from = fake.inner("images");
  const folder = from.needed("folder");
  const formats = from.has("formats") ? from.texts("formats") : [];
  return folder === undefined
    ? {}
    : { images: { folder, formats: formats.length > 0 ? formats : ["qcow2"] } };
}
