import {
  type ConfigOf,
  cloudConfig,
  type Entry,
  Is,
  Key,
  marketType,
  type OrderOf,
  type OwnOf,
  type Reader,
  type Values,
} from "@nodeyard/driver";
import { z } from "zod";

const { username: _, ...ansible } = Key.loginKeys;

/** By the reference of the VPC API. */
const ZONE = Is.asIn("a zone", "us-south-1", /^[a-z0-9-]+-\d+$/, ["us-south", ""]);
const REGION = Is.asIn("a region", "us-south", /^[a-z]+(-[a-z]+)+$/, ["us-south-1", ""]);
const PROFILE = Is.asIn("a profile", "bx2-2x8", /^[a-z][a-z0-9-]*[a-z0-9]$/, ["BX2", ""]);
const ENDPOINT = Is.pattern("an address, as in https://s3.example.org", /^https?:\/\/[^/\s]+\/?$/, [
  ["https://s3.us-south.cloud-object-storage.appdomain.cloud"],
  ["s3.us-south.cloud-object-storage.appdomain.cloud", ""],
]);
/** Both names are in those of resource groups. */
const IN_GROUPS = /^[A-Za-z0-9_ -]+$/;
const USER_DATA = Is.bytes(65_535);

const OUTER = Key.inherited("the provider's");
const OUTER_OR_FALSE = Key.inherited("the provider's, else false");
const OUTER_OR_TRUE = Key.inherited("the provider's, else true");
const networking = {
  zone: Key.text("Zone of the machines.", {
    ...Key.inherited("the provider's, else the subnet's"),
    like: ZONE,
  }),
  subnet: Key.text("Subnet of the machines.", { ...OUTER, like: Is.CLOUD_NAME }),
  subnets: Key.texts(
    "Subnets in several zones, in place of `subnet` and `zone`; a request gets one of the zones.",
    { ...OUTER, like: Is.CLOUD_NAME },
  ).accepted(Key.OURS),
  "public-ipv4": Key.flag("A floating IP.", OUTER_OR_FALSE),
  "use-internal-ip": Key.flag("Clients use the private address.", OUTER_OR_FALSE),
  "host-key-checking": Key.flag("False: ready once the cloud says so.", OUTER_OR_TRUE),
};

const osFilter = {
  architecture: Key.text("Architecture."),
  "display-name": Key.text("Display name."),
  family: Key.text("Family."),
  href: Key.text("URL."),
  name: Key.text("Name."),
  vendor: Key.text("Vendor."),
  version: Key.text("Version."),
  "dedicated-host-only": Key.flag("Only for dedicated hosts."),
};
const imageFilter = {
  "operating-system": Key.inner(Key.section(osFilter), "Of the image."),
  "owner-type": Key.text("Type of the owner."),
  status: Key.text("State of the image."),
};

const cloudImage = {
  keys: Key.texts("Names of the SSH keys of the instance."),
  "image-href": Key.text("URL of the image."),
  "image-id": Key.text("Id of the image."),
  "image-name": Key.text("Name of the image."),
  "image-filter": Key.optional("The newest image that fits.", imageFilter).differs(
    "takes the newest image that fits, as Nodepool's page says; its code takes the first one of the list.",
  ),
};

const label = {
  profile: Key.text("Profile of the instance.", { needed: true, like: PROFILE }),
  "use-spot": Key.spot("A spot instance, which IBM may take back.").accepted(Key.OURS),
  "user-data": Key.userData("User data.", USER_DATA),
};

const NAME = "must be a string that does not start with an underscore";

const pool = {
  ...networking,
  name: Key.field(
    "Name of the pool, unique in its provider.",
    { needed: true },
    z.string({ error: NAME }).regex(/^[^_]/, { error: NAME }),
    (at, key) => at.needed(key) as string,
  ),
  limits: Key.limits({}, { needed: true }),
};

const provider = {
  ...Key.machineKeys(120),
  ...networking,
  vpc: Key.text("Name of the virtual private cloud.", { needed: true, like: Is.CLOUD_NAME }),
  region: Key.text("Region.", { needed: true, like: REGION }),
  "credentials-file": Key.text("File with the credentials, as IBM's SDKs read it.", {
    shown: "$IBM_CREDENTIALS_FILE, else VPC_* of the environment",
    like: Is.NOT_EMPTY,
  }).names("file"),
  rate: Key.rate(
    "Calls per second, for all providers with one credential and region; 0: no limit.",
    10,
  ).differs("is 10 unless it is set; in Nodepool 1, and a list counts once, however many pages it has."),
  "object-storage": Key.optional("Where uploads go first.", {
    "instance-name": Key.text("Instance of the object storage.", { needed: "validator" }).unread(),
    endpoint: Key.text("Its endpoint.", { needed: "validator", default: "", like: ENDPOINT }),
    "bucket-name": Key.text("Bucket.", { needed: "validator", default: "" }),
  }),
  quota: Key.inner(
    Key.section({
      instances: Key.integer("Nodes at once.", Key.LIMIT),
      cores: Key.integer("Cores at once.", Key.LIMIT),
      ram: Key.integer("Memory at once.", { ...Key.LIMIT, unit: "MiB" }),
    }),
    "Limits of the account, which IBM's API does not tell.",
  ).differs("counts memory in MiB; Nodepool compares it with GiB."),
  "image-format": Key.oneOf("Format of uploads.", ["qcow2", "vhd"], { default: "qcow2" }).accepted(
    Key.DOCUMENTED,
  ),
  "image-upload-timeout": Key.uploadLimit("For one upload, and for the import after it.").accepted(Key.OURS),
};

const diskimage = {
  ...ansible,
  "operating-system": Key.text("Operating system, as the cloud calls it.", {
    needed: true,
    like: Is.NOT_EMPTY,
  }),
};

type Networking = Omit<Values<typeof networking>, "useInternalIp" | "hostKeyChecking">;

/** Where a label's image is found: by one of the four, the others are null. */
export type ImageSource = Omit<Values<typeof cloudImage>, "keys">;

export interface ImageFacts {
  /** Null: an uploaded image, whose id is that of the upload. */
  readonly source: ImageSource | null;
  /** Names of SSH keys. */
  readonly keys: readonly string[];
}

/** The keys of an ibmvpc provider, Nodepool's and those that only Nodeyard has: schema, defaults and compiler. */
export const ibmvpcConfig = cloudConfig(
  "ibmvpc",
  {
    ...{ provider, pool, label, needed: "validator", perOffering: ["profile", "use-spot"] },
    images: {
      ...{ diskimage, cloudImage },
      rules: [Key.needs("username"), Key.exactlyOne("image-href", "image-id", "image-name", "image-filter")],
    },
  },
  {
    provider({ at, name, own, diskimages }) {
      refuseName(name, at);
      if (diskimages.length > 0 && own.objectStorage === null)
        at.useless("diskimages", "cannot be uploaded without a bucket; add object-storage");
      /** Operating systems of uploads, by diskimage. */
      const systems = new Map(diskimages.map(({ name, own }) => [name, own.operatingSystem]));
      return { own: { ...own, systems } };
    },
    images: {
      none: { source: null, keys: [] } as ImageFacts,
      cloudImage: ({ keys, ...source }): ImageFacts => ({ keys, source }),
    },
    pool(pool, { own: provider }) {
      refuseName(pool.name, pool.at);
      const own = networkOf(provider, pool);
      return { availabilityZones: own.zone === null ? [] : [own.zone], own };
    },
    typeOf: ({ own: { profile, spot } }) => marketType(profile, spot),
  },
);

/** A compiled provider of the ibmvpc driver. */
export type IbmProviderConfig = ConfigOf<typeof ibmvpcConfig>;
/** The driver's part of a label, with its image. */
export type IbmLabelOwn = OwnOf<typeof ibmvpcConfig, "label">;
export type IbmOrder = OrderOf<typeof ibmvpcConfig>;
/** The driver's part of a pool. */
export type IbmPoolOwn = OwnOf<typeof ibmvpcConfig, "pool">;

function refuseName(name: string, at: Reader): void {
  if (!IN_GROUPS.test(name))
    at.error(
      "name",
      `is ${name}, which no resource group can have in its name; write letters, digits and dashes`,
    );
}

/** Where a pool's machines are; the zone null: that of each subnet. Its own keys count before those of the provider. */
function networkOf(provider: Networking, pool: Entry<Networking>) {
  const publicIpv4 = pool.publicIpv4 ?? provider.publicIpv4 ?? false;
  const isOwn = pool.subnet !== undefined || pool.zone !== undefined;
  const several = pool.subnets ?? (isOwn ? undefined : provider.subnets);
  if (several?.length) return { zone: null, subnets: several, publicIpv4 };
  const subnet = pool.subnet ?? provider.subnet;
  if (subnet == null) pool.at.error("subnet", "is missing, as in the provider; add it, or subnets");
  return { zone: pool.zone ?? provider.zone ?? null, subnets: [subnet ?? ""], publicIpv4 };
}
