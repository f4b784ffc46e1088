import {
  CLOUD_NAME,
  commonOf,
  compileImages,
  compileLabels,
  compilePools,
  DOCUMENTED,
  driverConfig,
  entries,
  FROM_0,
  flag,
  imageKeys,
  integer,
  labelImage,
  launchKeys,
  NOT_EMPTY,
  number,
  OURS,
  type ProviderConfig,
  poolKeys,
  type Rule,
  seconds,
  section,
  text,
  texts,
  uploadKeys,
  type Values,
} from "@nodeyard/driver";
import * as is from "./grammar.ts";

const labelTable = {
  name: text("A top-level label.", { needed: true }),
  "cloud-image": text("A `cloud-images` entry of this provider; this or `diskimage`."),
  diskimage: text("A `diskimages` entry of this provider.").accepted(OURS),
  "instance-type": text("Machine type.", { needed: true, like: is.MACHINE_TYPE }),
  "volume-type": text("Type of the boot disk.", { default: "pd-standard", like: is.DISK_TYPE }),
  "volume-size": integer("Size of the boot disk.", { default: 10, unit: "GiB", like: is.DISK_SIZE }),
  "use-spot": flag("A spot machine, which Google may take back.", { default: false })
    .accepted(OURS)
    .as("spot"),
  "max-run-duration": seconds(
    "Google itself deletes the machine this long after its start, whatever becomes of Nodeyard. More than any job takes.",
    { shown: "no limit", like: is.RUN_LIMIT },
  )
    .accepted(OURS)
    .as("maxRunMs"),
  "service-account": text("The machine's own account, with all scopes.", {
    shown: "none",
    like: is.SERVICE_ACCOUNT,
  }).accepted(OURS),
  userdata: text("User data for cloud-init.", { like: is.USER_DATA }).accepted(OURS).secret().as("userData"),
};

const HAS_IMAGE: Rule = [
  (value) => value["cloud-image"] !== undefined || value.diskimage !== undefined,
  "has no image; add cloud-image or diskimage",
];

const poolTable = {
  ...poolKeys({}),
  name: text("Name of the pool, unique in its provider.", { needed: true }),
  "use-internal-ip": flag("Clients use the private address.", { default: false }),
  "host-key-checking": flag("False: ready as soon as the cloud says so.", { default: true }).accepted(
    DOCUMENTED,
  ),
  "availability-zones": texts("Zones of the region, of which one is chosen per request.", {
    default: [],
    shown: "the provider's zone",
    like: is.ZONE,
  }).accepted(OURS),
  network: text("Network of the machines.", { default: "default", like: is.NETWORK }).accepted(OURS),
  subnetwork: text("Its subnetwork in the region.", { shown: "the network's", like: is.NETWORK }).accepted(
    OURS,
  ),
  "network-tags": texts("Tags by which firewall rules name the machines.", {
    default: [],
    like: is.NETWORK_TAG,
  }).accepted(OURS),
  "public-ipv4": flag("A public IPv4 address.", { default: true }).accepted(OURS),
  labels: entries(section(labelTable, HAS_IMAGE), "What the pool offers.", { needed: "validator" }),
};

const cloudImageTable = {
  "image-id": text(
    "Path of the image, as in projects/debian-cloud/global/images/debian-12-bookworm-v20261110.",
    {
      like: CLOUD_NAME,
    },
  ),
  "image-project": text("Project of the family.", { shown: "the provider's", like: is.PROJECT }),
  "image-family": text("The newest image of it.", { like: is.FAMILY }),
  key: text("Public key that the image's user gets.", { like: NOT_EMPTY }),
};

const diskimageTable = {
  family: text("Family of the uploaded images.", { like: is.FAMILY }),
  key: text("Public key that the image's user gets.", { like: NOT_EMPTY }),
};

const lists = imageKeys(
  { diskimage: diskimageTable, cloudImage: cloudImageTable },
  { description: "Images that the cloud has.", named: "loader" },
);

/** The keys of a gce provider: Nodepool's, and those that only Nodeyard has. */
const table = {
  ...launchKeys({}),
  ...uploadKeys,
  project: text("Project.", { needed: true, like: is.PROJECT }),
  region: text("Region.", { needed: "validator", shown: "the zone's", like: is.REGION }),
  zone: text("Zone.", { needed: "validator", shown: "all of the region", like: is.ZONE }),
  rate: number("Calls of the API per second, for all providers with one credential; 0: no limit.", {
    default: 10,
    like: FROM_0,
  })
    .accepted("is read by Nodepool's loader, and refused by its validator")
    .differs("is 10 unless it is set; in Nodepool 2."),
  "rate-limit": integer("Without effect.", { deprecated: true }).unused(),
  "credentials-file": text("Key of a service account, or configuration of a workload identity.", {
    shown: "application default credentials",
    like: NOT_EMPTY,
  })
    .accepted(OURS)
    .names("file"),
  "api-endpoint": text(
    "Address of Compute Engine and of Cloud Storage, such as one of Private Service Connect.",
    {
      shown: "Google's",
      like: is.ENDPOINT,
    },
  ).accepted(OURS),
  bucket: text("Bucket for uploads before they become images.", { like: is.BUCKET }).accepted(OURS),
  diskimages: lists.diskimages.accepted(OURS),
  "cloud-images": lists["cloud-images"],
  pools: entries(section(poolTable), "What the provider offers, in pools.", { needed: "validator" }),
};

/** What a label takes over from its image. */
interface ImageFacts {
  /** What a boot disk is made from; null for a diskimage: the id of its upload. */
  readonly sourceImage: string | null;
  readonly key: string | null;
}

/** The driver's part of a provider. */
export interface GceProviderOwn
  extends Pick<
    Values<typeof table>,
    "project" | "rate" | "credentialsFile" | "apiEndpoint" | "bucket" | "imageUploadTimeoutMs"
  > {
  readonly region: string;
  /** Null: any of the region. */
  readonly zone: string | null;
  /** Families of uploaded images, by diskimage. */
  readonly families: ReadonlyMap<string, string | null>;
}

/** The driver's part of a pool. */
export type GcePoolOwn = Pick<
  Values<typeof poolTable>,
  "network" | "subnetwork" | "networkTags" | "publicIpv4"
>;

/** The driver's part of a label. */
export interface GceLabelOwn
  extends Omit<Values<typeof labelTable>, "name" | "cloudImage" | "diskimage">,
    ImageFacts {
  /** Of the pool: an address counts for the quota. */
  readonly publicIpv4: boolean;
}

/** A compiled provider of the gce driver. */
export type GceProviderConfig = ProviderConfig<GceProviderOwn, GcePoolOwn, GceLabelOwn>;

const NO_IMAGE: ImageFacts = { sourceImage: null, key: null };

/** The keys of a gce provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const gceConfig = driverConfig("gce", table, (provider, context): GceProviderConfig => {
  const { at, project, zone, rate, credentialsFile, apiEndpoint, bucket, imageUploadTimeoutMs } = provider;
  const region = provider.region ?? zone?.replace(/-[a-z]$/, "") ?? "";
  if (region === "") at.error("region", "is missing; add it, or a zone");
  const refuseZone = (one: string, where: typeof at, key: string) => {
    if (!one.startsWith(`${region}-`))
      where.error(key, `has ${one}, which is not in ${region}; write a zone of the region`);
  };
  if (zone !== null) refuseZone(zone, at, "zone");
  if (provider.diskimages.length > 0 && bucket === null)
    at.useless("diskimages", "cannot be uploaded without a bucket; add bucket");
  const images = compileImages(provider, context, {
    diskimage: ({ key }): ImageFacts => ({ sourceImage: null, key }),
    cloudImage: ({ imageId, imageProject, imageFamily, key }): ImageFacts => ({
      // Google resolves a family when a machine is made, so that a new image counts at once.
      sourceImage:
        imageId ?? (imageFamily && `projects/${imageProject ?? project}/global/images/family/${imageFamily}`),
      key,
    }),
  });
  return {
    ...commonOf(provider),
    pools: compilePools(provider, (pool) => {
      const { network, subnetwork, networkTags, publicIpv4, availabilityZones } = pool;
      for (const one of availabilityZones) refuseZone(one, pool.at, "availability-zones");
      return {
        labels: compileLabels(pool, context, (label) => {
          const { name, cloudImage, diskimage, at: where, ...keys } = label;
          const { connection, image, own } = labelImage(label, images, context, NO_IMAGE);
          if (image === null)
            where.useless(undefined, `label ${name} has no image; add cloud-image or diskimage`);
          if (image?.kind === "cloud-image" && images.cloudImages.has(image.name) && own.sourceImage === null)
            where.useless(
              "cloud-image",
              `names ${image.name}, which has neither image-id nor image-family; add one`,
            );
          return {
            hostKeyChecking: pool.hostKeyChecking,
            connection,
            image,
            own: { ...keys, ...own, publicIpv4 },
          };
        }),
        availabilityZones: availabilityZones.length > 0 || zone === null ? availabilityZones : [zone],
        useInternalIp: pool.useInternalIp,
        own: { network, subnetwork, networkTags, publicIpv4 },
      };
    }),
    own: {
      ...{ project, region, zone, rate, credentialsFile, apiEndpoint, bucket, imageUploadTimeoutMs },
      families: new Map(provider.diskimages.map(({ name, own }) => [name, own.family])),
    },
  };
});
