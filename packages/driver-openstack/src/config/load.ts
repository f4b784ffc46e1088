import {
  type LoadContext,
  Reader,
  readCloudPools,
  readCommonProvider,
  readLaunchLimits,
} from "@nodeyard/driver";
import type { OpenstackPoolOwn, OpenstackProviderConfig } from "../own.ts";
import { readImages } from "./images.ts";
import { readLabel } from "./label.ts";

/** What the loader makes of the keys (docs/contract/config.md, "OpenStack keys"); every default of the driver is applied in this folder. */
export function load(raw: Readonly<Record<string, unknown>>, context: LoadContext): OpenstackProviderConfig {
  const from = new Reader(raw, [], (finding) => context.report(finding));
  const common = readCommonProvider(from, "openstack");
  const images = readImages(from, context);
  return {
    ...common,
    pools: readCloudPools(from, common, context, {
      own: readPoolOwn,
      label: (at, pool) => readLabel(at, images, pool, context),
    }),
    ...readLaunchLimits(from),
    own: {
      cloud: from.text("cloud", null),
      region: from.text("region-name", null),
      // Seconds between calls here; calls per second for other clouds.
      intervalMs: from.has("rate") ? Math.max(0, from.milliseconds("rate", 0)) : null,
      imageUploadTimeoutMs: from.milliseconds("image-upload-timeout", 3600),
      portCleanup: from.number("port-cleanup-interval", 600) > 0,
      diskimages: new Map([...images.diskimages].map(([name, { own }]) => [name, own])),
    },
  };
}

function readPoolOwn(from: Reader): OpenstackPoolOwn {
  return {
    networks: from.texts("networks"),
    securityGroups: from.texts("security-groups"),
    autoFloatingIp: from.flag("auto-floating-ip", true),
  };
}
