import {
  ABOVE_0,
  bytes,
  CLOUD_NAME,
  commonOf,
  compileImages,
  compileLabels,
  compilePools,
  DOCUMENTED,
  driverConfig,
  type Entry,
  entries,
  exactlyOne,
  FROM_0,
  field,
  flag,
  group,
  imageKeys,
  inherited,
  inner,
  integer,
  LIMIT,
  labelImage,
  loginKeys,
  machineKeys,
  NOT_EMPTY,
  NUMBER,
  needs,
  OURS,
  oneOf,
  type PoolConfig,
  type ProviderConfig,
  pattern,
  poolKeys,
  seconds,
  section,
  text,
  texts,
  type Values,
} from "@nodeyard/driver";
import { z } from "zod";

const { username: _, ...ansibleKeys } = loginKeys;

/** By the reference of the VPC API. */
const ZONE = pattern("a zone, as in us-south-1", /^[a-z0-9-]+-\d+$/, [["us-south-1"], ["us-south", ""]]);
const REGION = pattern("a region, as in us-south", /^[a-z]+(-[a-z]+)+$/, [["us-south"], ["us-south-1", ""]]);
const PROFILE = pattern("a profile, as in bx2-2x8", /^[a-z][a-z0-9-]*[a-z0-9]$/, [["bx2-2x8"], ["BX2", ""]]);
const ENDPOINT = pattern("an address, as in https://s3.example.org", /^https?:\/\/[^/\s]+\/?$/, [
  ["https://s3.us-south.cloud-object-storage.appdomain.cloud"],
  ["s3.us-south.cloud-object-storage.appdomain.cloud", ""],
]);
/** Both names are in those of resource groups. */
const IN_GROUPS = /^[A-Za-z0-9_ -]+$/;
const USER_DATA = bytes(65_535);

const OUTER = inherited("the provider's");
const networking = {
  zone: text("Zone of the machines.", { ...OUTER, shown: "the provider's, else the subnet's", like: ZONE }),
  subnet: text("Subnet of the machines.", { ...OUTER, like: CLOUD_NAME }),
  subnets: texts(
    "Subnets in several zones, in place of `subnet` and `zone`; a request gets one of the zones.",
    {
      ...OUTER,
      like: CLOUD_NAME,
    },
  ).accepted(OURS),
  "public-ipv4": flag("A floating IP.", inherited("the provider's, else false")),
  "use-internal-ip": flag("Clients use the private address.", inherited("the provider's, else false")),
  "host-key-checking": flag("False: ready once the cloud says so.", inherited("the provider's, else true")),
};

const osFilter = {
  architecture: text("Architecture."),
  "display-name": text("Display name."),
  family: text("Family."),
  href: text("URL."),
  name: text("Name."),
  vendor: text("Vendor."),
  version: text("Version."),
  "dedicated-host-only": flag("Only for dedicated hosts."),
};
const imageFilter = {
  "operating-system": inner(section(osFilter), "Of the image."),
  "owner-type": text("Type of the owner."),
  status: text("State of the image."),
};

const cloudImage = {
  keys: texts("Names of the SSH keys of the instance."),
  "image-href": text("URL of the image."),
  "image-id": text("Id of the image."),
  "image-name": text("Name of the image."),
  "image-filter": inner(section(imageFilter), "The newest image that fits.", { default: null }).differs(
    "takes the newest image that fits, as Nodepool's page says; its code takes the first one of the list.",
  ),
};

const labelTable = {
  name: text("A top-level label.", { needed: true }),
  profile: text("Profile of the instance.", { needed: true, like: PROFILE }),
  "cloud-image": text("A `cloud-images` entry of this provider."),
  diskimage: text("A `diskimages` entry of this provider; wins over `cloud-image`."),
  "use-spot": flag("A spot instance, which IBM may take back.", { default: false }).accepted(OURS).as("spot"),
  "user-data": text("User data.", { like: USER_DATA }).secret(),
};

const NAME = "must be a string that does not start with an underscore";

const poolTable = {
  ...poolKeys({}),
  ...networking,
  name: field(
    "Name of the pool, unique in its provider.",
    { needed: true },
    z.string({ error: NAME }).regex(/^[^_]/, { error: NAME }),
    (at, key) => at.needed(key) as string,
  ),
  limits: group({
    "max-servers": integer("Nodes at once; 0 or less: the pool declines everything.", { needed: "loader" })
      .as("instances")
      .differs(
        "a request that waits for room stays `requested`, without a lock and without nodes; in Nodepool it is `pending` and keeps both.",
      ),
  }),
  labels: entries(section(labelTable), "What the pool offers.", { needed: "validator" }),
};

const part = (description: string) => text(description, { needed: "validator", default: "" });

/** The keys of an ibmvpc provider: Nodepool's, and those that only Nodeyard has. */
const table = {
  ...machineKeys(120),
  ...networking,
  vpc: text("Name of the virtual private cloud.", { needed: true, like: CLOUD_NAME }),
  region: text("Region.", { needed: true, like: REGION }),
  "credentials-file": text("File with the credentials, as IBM's SDKs read it.", {
    shown: "$IBM_CREDENTIALS_FILE, else VPC_* of the environment",
    like: NOT_EMPTY,
  }).names("file"),
  rate: field(
    "Calls per second, for all providers with one credential and region; 0: no limit.",
    { default: 10, like: FROM_0, instead: "counts as 0: no limit" },
    NUMBER,
    (at, key) => Math.max(0, at.number(key, 10)),
  ).differs("is 10 unless it is set; in Nodepool 1, and a list counts once, however many pages it has."),
  "object-storage": inner(
    section({
      "instance-name": text("Instance of the object storage.", { needed: "validator" }).unread(),
      endpoint: text("Its endpoint.", { needed: "validator", default: "", like: ENDPOINT }),
      "bucket-name": part("Bucket."),
    }),
    "Where uploads go first.",
    { default: null },
  ),
  quota: inner(
    section({
      instances: integer("Nodes at once.", LIMIT),
      cores: integer("Cores at once.", LIMIT),
      ram: integer("Memory at once.", { ...LIMIT, unit: "MiB" }),
    }),
    "Limits of the account, which IBM's API does not tell.",
  ).differs("counts memory in MiB; Nodepool compares it with GiB."),
  "image-format": oneOf("Format of uploads.", ["qcow2", "vhd"], { default: "qcow2" })
    .accepted(DOCUMENTED)
    .map((format) => format ?? "qcow2"),
  "image-upload-timeout": seconds("For one upload, and for the import after it.", {
    default: 3600,
    like: ABOVE_0,
  })
    .as("uploadMs")
    .accepted(OURS),
  ...imageKeys(
    {
      diskimage: {
        ...ansibleKeys,
        "operating-system": text("Operating system, as the cloud calls it.", {
          needed: true,
          like: NOT_EMPTY,
        }),
      },
      cloudImage,
    },
    {
      description: "Images that the cloud has.",
      named: true,
      rules: [needs("username"), exactlyOne("image-href", "image-id", "image-name", "image-filter")],
    },
  ),
  pools: entries(section(poolTable), "What the provider offers, in pools.", { needed: "validator" }),
};

type Keys = Values<typeof table>;
type Networking = Values<typeof networking>;

/** Where a label's image is found. */
export type ImageSource =
  | { readonly id: string }
  | { readonly href: string }
  | { readonly name: string }
  | { readonly filter: Values<typeof imageFilter> };

interface ImageFacts {
  /** Null: an uploaded image, whose id is that of the upload. */
  readonly source: ImageSource | null;
  /** Names of SSH keys. */
  readonly keys: readonly string[];
}

/** The driver's part of a provider. */
export interface IbmProviderOwn
  extends Pick<
    Keys,
    "vpc" | "region" | "credentialsFile" | "rate" | "objectStorage" | "quota" | "imageFormat" | "uploadMs"
  > {
  /** Operating systems of uploads, by diskimage. */
  readonly systems: ReadonlyMap<string, string>;
}

/** The driver's part of a pool. */
export interface IbmPoolOwn {
  /** Null: that of each subnet. */
  readonly zone: string | null;
  readonly subnets: readonly string[];
  readonly publicIpv4: boolean;
}

/** The driver's part of a label. */
export interface IbmLabelOwn
  extends Pick<Values<typeof labelTable>, "profile" | "spot" | "userData">,
    ImageFacts {}

/** A compiled provider of the ibmvpc driver. */
export type IbmProviderConfig = ProviderConfig<IbmProviderOwn, IbmPoolOwn, IbmLabelOwn>;
/** A compiled pool of the ibmvpc driver. */
export type IbmPoolConfig = PoolConfig<IbmPoolOwn, IbmLabelOwn>;

const NO_IMAGE: ImageFacts = { source: null, keys: [] };

/** The keys of an ibmvpc provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const ibmvpcConfig = driverConfig("ibmvpc", table, (provider, context): IbmProviderConfig => {
  const { vpc, region, credentialsFile, rate, objectStorage, quota, imageFormat, uploadMs } = provider;
  for (const { at, name } of [provider, ...provider.pools])
    if (!IN_GROUPS.test(name))
      at.error(
        "name",
        `is ${name}, which no resource group can have in its name; write letters, digits and dashes`,
      );
  if (provider.diskimages.length > 0 && objectStorage === null)
    provider.at.useless("diskimages", "cannot be uploaded without a bucket; add object-storage");
  const images = compileImages(provider, context, {
    diskimage: () => NO_IMAGE,
    cloudImage: ({ keys, ...sources }): ImageFacts => ({ keys, source: sourceOf(sources) }),
  });
  return {
    ...commonOf(provider),
    pools: compilePools(provider, (pool) => {
      const own = networkOf(provider, pool);
      return {
        labels: compileLabels(pool, context, (label) => {
          const { at, name, profile, spot, userData } = label;
          const { connection, image, own: facts } = labelImage(label, images, context, NO_IMAGE);
          if (image === null)
            at.useless(undefined, `label ${name} has no image; add diskimage or cloud-image`);
          const hostKeyChecking = pool.hostKeyChecking ?? provider.hostKeyChecking ?? true;
          return { hostKeyChecking, connection, image, own: { profile, spot, userData, ...facts } };
        }),
        availabilityZones: own.zone === null ? [] : [own.zone],
        useInternalIp: pool.useInternalIp ?? provider.useInternalIp ?? false,
        own,
      };
    }),
    own: {
      ...{ vpc, region, credentialsFile, rate, objectStorage, quota, imageFormat, uploadMs },
      systems: new Map(provider.diskimages.map(({ name, own }) => [name, own.operatingSystem])),
    },
  };
});

/** Where a pool's machines are. Its own keys count before those of the provider. */
function networkOf(provider: Networking, pool: Entry<Networking>): IbmPoolOwn {
  const publicIpv4 = pool.publicIpv4 ?? provider.publicIpv4 ?? false;
  const isOwn = pool.subnet !== undefined || pool.zone !== undefined;
  const several = pool.subnets ?? (isOwn ? undefined : provider.subnets);
  if (several?.length) return { zone: null, subnets: several, publicIpv4 };
  const subnet = pool.subnet ?? provider.subnet;
  if (subnet == null) pool.at.error("subnet", "is missing, as in the provider; add it, or subnets");
  return { zone: pool.zone ?? provider.zone ?? null, subnets: [subnet ?? ""], publicIpv4 };
}

/** The schema allows exactly one. */
function sourceOf({
  imageHref: href,
  imageId: id,
  imageName: name,
  imageFilter: filter,
}: Omit<Values<typeof cloudImage>, "keys">): ImageSource | null {
  if (id !== null) return { id };
  if (href !== null) return { href };
  return name === null ? filter && { filter } : { name };
}
