import {
  commonOf,
  compileImages,
  compileLabels,
  compilePools,
  driverConfig,
  type Entry,
  type LoadContext,
  labelImage,
  type ProviderConfig,
} from "@nodeyard/driver";
import {
  type AddressKeys,
  azureTable,
  type CloudImageKeys,
  type DiskimageKeys,
  type LabelKeys,
  type ProviderKeys,
} from "./config-table.ts";

/** What a label takes over from its image. */
export interface ImageFacts extends Pick<CloudImageKeys, "password" | "generatePassword" | "key"> {
  /** `imageReference` of the machine; a filter is looked up, and null is an uploaded image, whose name is the id of the upload. */
  readonly source: object | { readonly filter: NonNullable<CloudImageKeys["imageFilter"]> } | null;
}

/** Provider settings that only this driver reads. */
export interface AzureProviderOwn
  extends Pick<ProviderKeys, "location" | "resourceGroup" | "authPath" | "rate" | "uploadMs"> {
  /** Id of the subnet, or where it is in the subscription; null: none is configured. */
  readonly subnet:
    | string
    | { readonly group: string; readonly network: string; readonly name: string }
    | null;
  readonly diskimages: ReadonlyMap<string, DiskimageKeys>;
}

/** The addresses of a pool's machines; a public one has a private one below it. */
export interface AzurePoolOwn {
  readonly ipv4: boolean;
  readonly ipv6: boolean;
  readonly publicIpv4: boolean;
  readonly publicIpv6: boolean;
}

/** Label settings that only this driver reads. */
export interface AzureLabelOwn
  extends Pick<
      LabelKeys,
      "spot" | "maxPrice" | "tags" | "dynamicTags" | "userData" | "customData" | "volumeSize"
    >,
    ImageFacts {
  readonly size: string;
}

/** A compiled provider of the azure driver. */
export type AzureProviderConfig = ProviderConfig<AzureProviderOwn, AzurePoolOwn, AzureLabelOwn>;

const NO_IMAGE: ImageFacts = { source: null, password: null, generatePassword: false, key: null };

/** The keys of an azure provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const azureConfig = driverConfig("azure", azureTable, (provider, context): AzureProviderConfig => {
  const images = imagesOf(provider, context);
  const { location, resourceGroup, authPath, rate, uploadMs } = provider;
  const subnet = subnetOf(provider);
  if (subnet === null)
    provider.at.useless(undefined, "has no network, so that it cannot be opened; add network or subnet-id");
  return {
    ...commonOf(provider),
    pools: compilePools(provider, (pool) => ({
      labels: compileLabels(pool, context, (label) => {
        const { at, name, hardwareProfile, cloudImage, diskimage, ...own } = label;
        if (cloudImage === null && diskimage === null)
          at.useless(undefined, `label ${name} has no image; add diskimage or cloud-image`);
        const found = labelImage(label, images, context, NO_IMAGE);
        return {
          hostKeyChecking: pool.hostKeyChecking ?? provider.hostKeyChecking ?? true,
          connection: found.connection,
          image: found.image,
          own: { ...own, ...found.own, size: hardwareProfile.vmSize },
        };
      }),
      availabilityZones: pool.availabilityZones,
      useInternalIp: pool.useInternalIp ?? provider.useInternalIp ?? false,
      own: addressesOf(provider, pool),
    })),
    own: {
      ...{ location, resourceGroup, authPath, rate, uploadMs, subnet },
      diskimages: new Map(provider.diskimages.map(({ name, own }) => [name, own])),
    },
  };
});

function addressesOf(provider: AddressKeys, pool: AddressKeys): AzurePoolOwn {
  const publicIpv4 = pool.publicIpv4 ?? provider.publicIpv4 ?? true;
  const publicIpv6 = pool.publicIpv6 ?? provider.publicIpv6 ?? false;
  const ipv6 = (pool.ipv6 ?? provider.ipv6 ?? false) || publicIpv6;
  // Without any, IPv4 counts.
  const ipv4 = (pool.ipv4 ?? provider.ipv4 ?? false) || publicIpv4 || !ipv6;
  return { ipv4, ipv6, publicIpv4, publicIpv6 };
}

function subnetOf({ subnetId, network, resourceGroup }: ProviderKeys): AzureProviderOwn["subnet"] {
  if (subnetId !== null) return subnetId;
  if (network == null || network.network === null) return null;
  return {
    group: network.resourceGroup ?? resourceGroup,
    network: network.network,
    name: network.subnet,
  };
}

/** The images of the provider by name, with what labels take over from them. */
function imagesOf(provider: Entry<ProviderKeys>, context: LoadContext) {
  return compileImages<DiskimageKeys, CloudImageKeys, ImageFacts>(provider, context, {
    diskimage: ({ key }) => ({ ...NO_IMAGE, key }),
    cloudImage: ({ password, generatePassword, key, ...own }) => ({
      ...{ password, generatePassword, key: key ?? provider.zuulPublicKey },
      source: sourceOf(own),
    }),
  });
}

type Sources = Omit<CloudImageKeys, "password" | "generatePassword" | "key">;

/** The image as Azure's API names it. The schema allows exactly one of the keys. */
function sourceOf({
  imageFilter,
  imageReference,
  communityGalleryImage: community,
  sharedGalleryImage: shared,
  imageId,
}: Sources): ImageFacts["source"] {
  if (imageFilter !== null) return { filter: imageFilter };
  if (imageReference !== null) return imageReference;
  if (community !== null) return { communityGalleryImageId: `/CommunityGalleries/${inGallery(community)}` };
  if (shared !== null) return { sharedGalleryImageId: `/SharedGalleries/${inGallery(shared)}` };
  return imageId === null ? null : { id: imageId };
}

function inGallery({
  galleryName,
  name,
  version,
}: NonNullable<CloudImageKeys["sharedGalleryImage"]>): string {
  return `${galleryName}/Images/${name}${version === null ? "" : `/Versions/${version}`}`;
}
