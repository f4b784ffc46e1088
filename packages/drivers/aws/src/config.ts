import {
  commonOf,
  compileImages,
  compileLabels,
  compilePools,
  driverConfig,
  type Entry,
  type ImageLists,
  type LoadContext,
  labelImage,
  type PoolConfig,
  type ProviderConfig,
  type Reader,
  type Resources,
} from "@nodeyard/driver";
import {
  type AwsDiskimage,
  awsTable,
  type CloudImageKeys,
  type LabelKeys,
  type OwnKeys,
  type PoolKeys,
  type ProviderKeys,
} from "./config-table.ts";
import { volumeProblem } from "./grammar.ts";

/** How a label finds its AMI: by id, by filters (the newest match counts), or by a parameter of Systems Manager. */
export type ImageSource =
  | { readonly id: string }
  | {
      readonly filters: readonly { readonly name: string; readonly values: readonly string[] }[];
      /** Account ids or aliases of owners; empty: all owners. */
      readonly owners: readonly string[];
    }
  | { readonly parameter: string };

/** Provider settings that only this driver reads. */
export interface AwsProviderOwn extends OwnKeys {
  readonly diskimages: ReadonlyMap<string, AwsDiskimage>;
}

/** Pool settings that only this driver reads. */
export interface AwsPoolOwn extends Pick<PoolKeys, "securityGroup" | "publicIpv4" | "publicIpv6"> {
  /** In the order of the file. Empty: the default subnets of the default VPC. */
  readonly subnets: readonly string[];
}

/** Label settings that only this driver reads. */
export interface AwsLabelOwn extends Omit<LabelKeys, "name" | "cloudImage" | "diskimage"> {
  /** Null for a diskimage: the AMI is the id of its upload. */
  readonly source: ImageSource | null;
}

/** A compiled provider of the aws driver. */
export type AwsProviderConfig = ProviderConfig<AwsProviderOwn, AwsPoolOwn, AwsLabelOwn>;
/** A compiled pool of the aws driver. */
export type AwsPoolConfig = PoolConfig<AwsPoolOwn, AwsLabelOwn>;

/** The keys of an aws provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const awsConfig = driverConfig("aws", awsTable, (provider, context): AwsProviderConfig => {
  const images = imagesOf(provider, context);
  for (const pool of provider.pools) refuseZone(pool, provider.own.region);
  return {
    ...commonOf(provider),
    pools: compilePools(provider, (pool) => ({
      labels: compileLabels(pool, context, (label) => labelOf(label, pool, images, context)),
      limits: limitsOf(provider, pool),
      availabilityZones: pool.availabilityZone === null ? [] : [pool.availabilityZone],
      useInternalIp: pool.useInternalIp,
      own: poolOf(pool),
    })),
    own: {
      ...provider.own,
      diskimages: new Map(provider.diskimages.map(({ name, own }) => [name, own])),
    },
  };
});

/** The images of the provider by name, with what labels take over from them. */
function imagesOf(provider: Entry<ProviderKeys>, context: LoadContext): ImageLists<ImageSource | null> {
  for (const { at, own } of provider.diskimages) {
    refuseVolume(at, own);
    if (own.importMethod === "image" && own.imdsSupport !== null)
      at.error("imds-support", "is not possible with import-method image; write snapshot or ebs-direct");
  }
  return compileImages(provider, context, { diskimage: () => null, cloudImage: sourceOf });
}

function refuseVolume(at: Reader, volume: Parameters<typeof volumeProblem>[0]): void {
  const problem = volumeProblem(volume);
  if (problem !== undefined) at.error(...problem);
}

/** Names of zones, local ones too, begin with their region's, where both have the form of AWS. */
function refuseZone({ at, availabilityZone: zone }: Entry<PoolKeys>, region: string | null): void {
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

/** The compiled label. Reports what no launch can do: dedicated hosts need one zone, and cannot be spot machines. */
function labelOf(
  label: Entry<LabelKeys>,
  pool: Entry<PoolKeys>,
  images: ImageLists<ImageSource | null>,
  context: LoadContext,
) {
  const { at, name, cloudImage, diskimage, ...own } = label;
  const { connection, image, own: source } = labelImage(label, images, context, null);
  if (image === null) at.useless(undefined, `label ${name} has no image; add cloud-image or diskimage`);
  if (own.instanceType === null && own.fleet === null)
    at.useless(undefined, `label ${name} has no size; add instance-type or fleet`);
  if (diskimage !== null && context.diskimages.has(diskimage) && !images.diskimages.has(diskimage))
    at.error("diskimage", `names ${diskimage}, which is not in this provider's diskimages; add it there`);
  refuseVolume(at, own);
  const strategy = own.fleet?.allocationStrategy;
  const market = own.spot ? "spot" : "on-demand";
  if (strategy && !STRATEGIES[market]!.includes(strategy))
    at.inner("fleet").error(
      "allocation-strategy",
      `is ${strategy}, which EC2 has not for ${market} machines; write ${STRATEGIES[market]!.join(" or ")}, or change use-spot`,
    );
  if (own.dedicatedHost && own.spot)
    at.error("dedicated-host", "is not possible together with use-spot; remove one");
  if (own.dedicatedHost && pool.availabilityZone === null)
    at.error("dedicated-host", "needs the availability-zone of its pool; add it there");
  return { hostKeyChecking: pool.hostKeyChecking, connection, image, own: { ...own, source } };
}

/** The driver's part of a pool. The older key `public-ip-address` counts before `public-ipv4`. */
function poolOf(pool: Entry<PoolKeys>): AwsPoolOwn {
  const { securityGroup, subnetId, subnetIds, publicIpv4, publicIpAddress, publicIpv6 } = pool;
  const subnets = subnetIds.length > 0 ? subnetIds : subnetId === null ? [] : [subnetId];
  return { securityGroup, subnets, publicIpv4: publicIpAddress ?? publicIpv4, publicIpv6 };
}

/** Limits of the pool. A pool's own key takes precedence over the provider's. */
function limitsOf(provider: Entry<ProviderKeys>, pool: Entry<PoolKeys>): Resources {
  const of = (key: string) => (pool.at.has(key) ? pool : provider).limits;
  return {
    instances: of("max-servers").instances,
    cores: of("max-cores").cores,
    ram: of("max-ram").ram,
    ...provider.maxResources,
    ...pool.maxResources,
  };
}
