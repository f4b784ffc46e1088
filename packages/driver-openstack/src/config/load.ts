import {
  type LoadContext,
  labelMap,
  Reader,
  readCommonPool,
  readCommonProvider,
  readLimits,
  uniquePools,
} from "@nodeyard/driver";
import type { OpenstackPoolConfig, OpenstackProviderConfig } from "../own.ts";
import { type ImageLists, readImages } from "./images.ts";
import { type PoolFacts, readLabel } from "./label.ts";

const POOL_LIMITS = {
  cores: "max-cores",
  ram: "max-ram",
  volumes: "max-volumes",
  "volume-gb": "max-volume-gb",
};

/** Verdict L of spec configuration.md 3.9; every default of the driver is applied in this folder. */
export function load(raw: Readonly<Record<string, unknown>>, context: LoadContext): OpenstackProviderConfig {
  const from = new Reader(raw, [], (finding) => context.report(finding));
  const common = readCommonProvider(from, "openstack");
  const images = readImages(from, context);
  const pools = from
    .mappings("pools")
    .flatMap((pool): OpenstackPoolConfig[] => readPool(pool, common, images, context) ?? []);
  return {
    ...common,
    pools: uniquePools(from, pools),
    launchTimeoutMs: from.milliseconds("launch-timeout", 3600),
    bootTimeoutMs: from.milliseconds("boot-timeout", 60),
    launchAttempts: Math.max(1, Math.floor(from.number("launch-retries", 3))),
    own: {
      cloud: from.text("cloud", null),
      region: from.text("region-name", null),
      // Seconds between calls here; calls per second for other clouds.
      intervalMs: from.has("rate") ? Math.max(0, from.milliseconds("rate", 0)) : null,
      imageUploadTimeoutMs: from.milliseconds("image-upload-timeout", 3600),
      portCleanup: from.number("port-cleanup-interval", 600) > 0,
      diskimages: new Map([...images.diskimages].map(([name, { configDrive }]) => [name, { configDrive }])),
    },
  };
}

function readPool(
  from: Reader,
  common: ReturnType<typeof readCommonProvider>,
  images: ImageLists,
  context: LoadContext,
): OpenstackPoolConfig[] | undefined {
  const base = readCommonPool(from, common);
  if (base === undefined) return undefined;
  const own = {
    ignoreProviderQuota: from.flag("ignore-provider-quota", false),
    networks: from.texts("networks"),
    securityGroups: from.texts("security-groups"),
    autoFloatingIp: from.flag("auto-floating-ip", true),
  };
  const facts: PoolFacts = { images, hostKeyChecking: from.flag("host-key-checking", true), own };
  const labels = from.mappings("labels").flatMap((at) => {
    const label = readLabel(at, facts, context);
    return label === undefined ? [] : [[at, label] as const];
  });
  return [
    {
      ...base,
      limits: { ...base.limits, ...readLimits(from, POOL_LIMITS) },
      labels: labelMap(from, labels, context),
      availabilityZones: from.has("availability-zones") ? from.texts("availability-zones") : [],
      useInternalIp: false,
      own,
    },
  ];
}
