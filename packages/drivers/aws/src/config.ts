import {
  type ConfigOf,
  cloudConfig,
  type Entry,
  Key,
  type OrderOf,
  type OwnOf,
  type Reader,
  type Values,
} from "@nodeyard/driver";
import { tables, type VolumeKeys } from "./config-table.ts";

type Keys<L extends "pool" | "label"> = Values<(typeof tables)[L]>;
type CloudImageKeys = Values<typeof tables.images.cloudImage>;

/** How a label finds its AMI: by id, by filters (the newest match counts), or by a parameter of Systems Manager. */
export type ImageSource =
  | { readonly id: string }
  | {
      readonly filters: readonly { readonly name: string; readonly values: readonly string[] }[];
      /** Account ids or aliases of owners; empty: all owners. */
      readonly owners: readonly string[];
    }
  | { readonly parameter: string };

/** The keys of an aws provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const awsConfig = cloudConfig("aws", tables, {
  provider({ own, diskimages }) {
    for (const { at, own } of diskimages) {
      refuseVolume(at, own);
      if (own.importMethod === "image" && own.imdsSupport !== null)
        at.error("imds-support", "is not possible with import-method image; write snapshot or ebs-direct");
    }
    return { own: { ...own, diskimages: new Map(diskimages.map(({ name, own }) => [name, own])) } };
  },
  // Null for a diskimage: the AMI is the id of its upload.
  images: {
    none: { source: null as ImageSource | null },
    cloudImage: (own) => ({ source: sourceOf(own) }),
  },
  pool(pool, { own: provider }) {
    const { subnetId, subnetIds, publicIpAddress, securityGroup, publicIpv6, availabilityZone } = pool;
    refuseZone(pool, provider.region);
    // The default: the default subnets of the default VPC. The older key `public-ip-address` counts before `public-ipv4`.
    const subnets = subnetIds.length > 0 ? subnetIds : subnetId === null ? [] : [subnetId];
    return {
      limits: { ...Key.limitsOver(pool, provider.limits), ...provider.maxResources, ...pool.maxResources },
      availabilityZones: availabilityZone === null ? [] : [availabilityZone],
      own: { securityGroup, subnets, publicIpv4: publicIpAddress ?? pool.publicIpv4, publicIpv6 },
    };
  },
  label(label, pool, _provider, context) {
    const { name, at, own, bootImage: image } = label;
    if (own.instanceType === null && own.fleet === null)
      at.useless(undefined, `label ${name} has no size; add instance-type or fleet`);
    if (image?.kind === "diskimage" && image.listed === false && context.diskimages.has(image.name))
      at.error("diskimage", `names ${image.name}, which is not in this provider's diskimages; add it there`);
    refuseVolume(at, own);
    refuseMarket(label, pool);
    return { own };
  },
  typeOf: ({ own }): string => machineType(own),
});

/** A compiled provider of the aws driver. */
export type AwsProviderConfig = ConfigOf<typeof awsConfig>;
export type AwsProviderOwn = OwnOf<typeof awsConfig, "provider">;
export type AwsPoolOwn = OwnOf<typeof awsConfig, "pool">;
export type AwsLabelOwn = OwnOf<typeof awsConfig, "label">;
export type AwsOrder = OrderOf<typeof awsConfig>;
/** Machine type of a label: labels of one type and market fail together and cost the same. `chosen`: the type that a fleet chose. */
export function machineType(
  { instanceType, fleet, spot, dedicatedHost }: AwsLabelOwn,
  chosen?: string,
): string {
  const types = fleet === null ? `${instanceType}` : (chosen ?? fleet.instanceTypes.join("/"));
  return `${types}${spot ? ", spot" : ""}${dedicatedHost ? ", dedicated host" : ""}`;
}

const WITH_IOPS = ["gp3", "io1", "io2"];

/** What EC2 refuses of settings that are right one by one. The type null: that of the image, which may be any. */
function refuseVolume(at: Reader, { volumeType: type, iops, throughput }: VolumeKeys): void {
  const remedy = `and the volume-type is ${type}; remove it, or change the type`;
  if (type === null) return;
  if (iops !== null && !WITH_IOPS.includes(type))
    at.error("iops", `is for ${WITH_IOPS.join(", ")}, ${remedy}`);
  else if (throughput !== null && type !== "gp3") at.error("throughput", `is for gp3, ${remedy}`);
  else if (iops === null && type.startsWith("io"))
    at.error("iops", `is missing, and the volume-type ${type} needs it; add it`);
}

/** Names of zones, local ones too, begin with their region's, where both have the form of AWS. */
function refuseZone({ at, availabilityZone: zone }: Entry<Keys<"pool">>, region: string | null): void {
  const isOfAws = /^[a-z]+(-[a-z]+)+-\d/;
  if (zone === null || region === null || !isOfAws.test(zone) || !isOfAws.test(region)) return;
  if (!zone.startsWith(region))
    at.error("availability-zone", `is ${zone}, which is not in ${region}; write a zone of the region`);
}

/** Where a cloud image comes from; null when the entry has none of the three keys, which the validator refuses. */
function sourceOf(own: CloudImageKeys): ImageSource | null {
  // With several of them set, the order of Nodepool's loader counts: filters before the id.
  if (own.imageParameter !== null) return { parameter: own.imageParameter };
  if (own.imageFilters.length === 0) return own.imageId === null ? null : { id: own.imageId };
  const filters = own.imageFilters.map(({ at, ...filter }) => {
    // Nodepool's schema has both spellings of the keys.
    const name = filter.name ?? filter.Name;
    const values = filter.values.length > 0 ? filter.values : filter.Values;
    if (name === null || values.length === 0)
      at.error(undefined, "needs a name and values; add what is missing");
    return { name: name ?? "", values };
  });
  return { filters, owners: own.imageOwners };
}

const STRATEGIES: Readonly<Record<string, readonly string[]>> = {
  "on-demand": ["lowest-price", "prioritized"],
  spot: ["price-capacity-optimized", "capacity-optimized", "diversified", "lowest-price"],
};

/** Reports what no launch can do: dedicated hosts need one zone, and cannot be spot machines. */
function refuseMarket({ at, ...label }: Entry<Keys<"label">>, pool: Keys<"pool">): void {
  const strategy = label.fleet?.allocationStrategy;
  const market = label.spot ? "spot" : "on-demand";
  if (strategy && !STRATEGIES[market]!.includes(strategy))
    at.inner("fleet").error(
      "allocation-strategy",
      `is ${strategy}, which EC2 has not for ${market} machines; write ${STRATEGIES[market]!.join(" or ")}, or change use-spot`,
    );
  if (label.dedicatedHost && label.spot)
    at.error("dedicated-host", "is not possible together with use-spot; remove one");
  if (label.dedicatedHost && pool.availabilityZone === null)
    at.error("dedicated-host", "needs the availability-zone of its pool; add it there");
}
