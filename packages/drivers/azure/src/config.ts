import { type ConfigOf, cloudConfig, marketType, type OrderOf, type OwnOf } from "@nodeyard/driver";
import {
  type AddressKeys,
  type CloudImageKeys,
  type DiskimageKeys,
  type ProviderKeys,
  tables,
} from "./config-table.ts";

/** What a label takes over from its image. */
export interface ImageFacts extends Pick<CloudImageKeys, "password" | "generatePassword" | "key"> {
  /** `imageReference` of the machine; a filter is looked up, and null is an uploaded image, whose name is the id of the upload. */
  readonly source: object | { readonly filter: NonNullable<CloudImageKeys["imageFilter"]> } | null;
}

const none: ImageFacts = { source: null, password: null, generatePassword: false, key: null };

/** The keys of an azure provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const azureConfig = cloudConfig("azure", tables, {
  provider(provider) {
    const subnet = subnetOf(provider);
    if (subnet === null)
      provider.at.useless(undefined, "has no network, so that it cannot be opened; add network or subnet-id");
    const diskimages = new Map(provider.diskimages.map(({ name, own }) => [name, own]));
    return { own: { ...provider.own, subnet, diskimages } };
  },
  images: {
    none,
    diskimage: ({ key }: DiskimageKeys): ImageFacts => ({ ...none, key }),
    cloudImage: ({ password, generatePassword, key, ...own }, _name, provider): ImageFacts => ({
      ...{ password, generatePassword, key: key ?? provider.zuulPublicKey },
      source: sourceOf(own),
    }),
  },
  pool: (pool, provider) => ({ own: addressesOf(provider, pool) }),
  label: ({ own: { hardwareProfile, ...own } }) => ({ own: { ...own, size: hardwareProfile.vmSize } }),
  typeOf: ({ own: { size, spot } }) => marketType(size, spot),
});

/** A compiled provider of the azure driver. */
export type AzureProviderConfig = ConfigOf<typeof azureConfig>;
export type AzureLabelOwn = OwnOf<typeof azureConfig, "label">;
export type AzureOrder = OrderOf<typeof azureConfig>;

/** The addresses of a pool's machines; a public one has a private one below it. */
function addressesOf(provider: AddressKeys, pool: AddressKeys) {
  const publicIpv4 = pool.publicIpv4 ?? provider.publicIpv4 ?? true;
  const publicIpv6 = pool.publicIpv6 ?? provider.publicIpv6 ?? false;
  const ipv6 = (pool.ipv6 ?? provider.ipv6 ?? false) || publicIpv6;
  // Without any, IPv4 counts.
  const ipv4 = (pool.ipv4 ?? provider.ipv4 ?? false) || publicIpv4 || !ipv6;
  return { ipv4, ipv6, publicIpv4, publicIpv6 };
}

/** Id of the subnet, or where it is in the subscription; null: none is configured. */
function subnetOf({ subnetId, network: named, resourceGroup }: ProviderKeys) {
  if (subnetId !== null) return subnetId;
  if (named == null || named.network === null) return null;
  return { group: named.resourceGroup ?? resourceGroup, network: named.network, name: named.subnet };
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

function inGallery({ galleryName, name, version }: NonNullable<CloudImageKeys["sharedGalleryImage"]>) {
  return `${galleryName}/Images/${name}${version === null ? "" : `/Versions/${version}`}`;
}
