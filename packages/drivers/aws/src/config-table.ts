import {
  ABOVE_0,
  amounts,
  atMostOne,
  CLOUD_NAME,
  DOCUMENTED,
  entries,
  exactlyOne,
  FLOAT,
  FROM_0,
  field,
  flag,
  group,
  imageKeys,
  inner,
  integer,
  LIMIT,
  LIST,
  loginKeys,
  machineKeys,
  mapping,
  NO_LIMIT,
  NOT_EMPTY,
  needs,
  OURS,
  oneOf,
  oneOfOrNull,
  poolKeys,
  seconds,
  section,
  sized,
  tagKeys,
  text,
  textOrTexts,
  texts,
  type Values,
} from "@nodeyard/driver";
import * as is from "./grammar.ts";

/** The keys of an aws provider, from the innermost mapping outwards. */

/** Both spellings of the keys are in use; the lower-case one counts first. */
const filter = section({
  name: text("Name of the filter.", { like: NOT_EMPTY }),
  Name: text("The same.", { like: NOT_EMPTY }),
  values: texts("Values that it takes.", { all: sized(1) }),
  Values: texts("The same.", { all: sized(1) }),
});

/** Keys of a root volume. */
const volume = <T extends string | null>(type: T) => ({
  "volume-type": text("Type of the root volume.", {
    ...{ default: type, shown: type ?? "the image's", like: is.VOLUME_TYPE },
  }),
  "volume-size": integer("Size of the root volume.", {
    ...{ shown: "the image's", unit: "GiB", like: is.VOLUME_SIZE },
  }),
  iops: integer("Of the root volume.", { like: is.IOPS }),
  throughput: integer("Of the root volume.", { unit: "MiB/s", like: is.THROUGHPUT }),
});

/** A label has a fleet or an instance type, never both (`atMostOne` at the pool). */
const fleet = section({
  "instance-types": field(
    "Instance types to choose from, the preferred one first.",
    { needed: "validator", all: sized(1), like: is.INSTANCE_TYPE },
    LIST,
    (at, key) => at.texts(key),
  ),
  "allocation-strategy": oneOf(
    "How EC2 chooses.",
    ["prioritized", "price-capacity-optimized", "capacity-optimized", "diversified", "lowest-price"],
    { needed: "validator" },
  ),
});

const label = {
  name: text("A top-level label.", { needed: true }),
  "cloud-image": text("A `cloud-images` entry of this provider."),
  diskimage: text("A `diskimages` entry of this provider."),
  "instance-type": text("Instance type; not together with `fleet`.", { like: is.INSTANCE_TYPE }),
  fleet: inner(fleet, "A fleet of one instance.", { default: null }),
  "key-name": text("Key pair of the instance.", { needed: "validator", like: CLOUD_NAME }),
  "ebs-optimized": flag("Dedicated bandwidth to volumes.", { default: false }),
  "use-spot": flag("A spot instance.", { default: false }).as("spot"),
  "dedicated-host": flag("On a host of its own; needs the pool's `availability-zone`.", { default: false }),
  ...volume(null),
  "volume-encrypted": flag("The root volume is encrypted, whatever the image and the account say.", {
    default: false,
  }).accepted(OURS),
  "volume-kms-key": text("Key of that encryption: id, ARN or alias.", {
    ...{ shown: "the account's", like: is.PARAMETER },
  }).accepted(OURS),
  userdata: text("User data.", { like: is.USER_DATA }).secret().as("userData"),
  "iam-instance-profile": inner(
    section(
      {
        name: text("Name of the profile.", { like: is.PROFILE }),
        arn: text("Its ARN.", { like: is.PROFILE_ARN }),
      },
      atMostOne("name", "arn"),
    ),
    "Profile of the instance.",
    { default: null, all: is.NAME_OR_ARN, instead: "gives the instance none" },
  ).as("profile"),
  imdsv2: oneOfOrNull("Whether the metadata service wants tokens.", ["required", "optional"]),
  ...tagKeys("Tags of the instance and its volumes.", is.TAGS),
};

/** Limits that a provider and its pools have alike; `limitsOf` in config.ts says which one counts. */
const limits = {
  "max-cores": integer("Cores at once.", LIMIT).as("cores"),
  "max-ram": integer("Memory at once.", { ...LIMIT, unit: "MiB" }).as("ram"),
};

const pool = {
  ...poolKeys(limits),
  name: text("Name of the pool, unique in its provider.", { needed: true }),
  "max-resources": amounts("Limits by quota code, over the provider's."),
  "security-group-id": text("Security group.", { like: is.SECURITY_GROUP }).as("securityGroup"),
  "subnet-id": text("Subnet.", { like: is.SUBNET }),
  "subnet-ids": texts("Subnets, of as many zones as there are; instead of `subnet-id`.", {
    like: is.SUBNET,
  }).accepted(OURS),
  "public-ipv4": flag("A public IPv4 address.", { default: true }),
  "public-ipv6": flag("A public IPv6 address.", { default: false }),
  "public-ip-address": flag("Older name of `public-ipv4`.", { deprecated: true }),
  "use-internal-ip": flag("Clients use the private address.", { default: false }).accepted(DOCUMENTED),
  "host-key-checking": flag("False: ready as soon as the cloud says so.", { default: true }),
  "availability-zone": text("Zone.", { shown: "the zones of the subnets", like: is.ZONE }).differs(
    "without it, one of the zones of the pool's subnets is chosen per request, and another where it has no capacity; in Nodepool AWS decides.",
  ),
  labels: entries(
    section(label, atMostOne("cloud-image", "diskimage"), atMostOne("instance-type", "fleet")),
    "What the pool offers.",
    { needed: "validator" },
  ),
};

/** Keys of a `diskimages` entry: how its uploads become AMIs, and what labels of the image take over. */
const diskimage = {
  ...loginKeys,
  architecture: text("Architecture.", { default: "x86_64", like: is.ARCHITECTURE }),
  "ena-support": flag("Enhanced networking.", { default: true }),
  ...volume("gp3"),
  "import-method": oneOf("How an upload becomes an image.", ["snapshot", "ebs-direct", "image"], {
    default: "snapshot",
  }),
  "imds-support": oneOfOrNull("Version of the metadata service.", ["v2.0"]),
  "copy-to": texts("Regions that the image is copied to.", { default: [], like: is.REGION }).accepted(OURS),
  "share-with": texts("Accounts that may launch the image.", { default: [], like: is.ACCOUNT }).accepted(
    OURS,
  ),
  "deprecate-after": seconds("After the upload; from then on AWS shows the image to its owner alone.", {
    default: null,
    shown: "never",
    like: ABOVE_0,
  })
    .as("deprecateAfterMs")
    .accepted(OURS),
  // The builder adds these tags to the metadata of uploads. On equal keys the tag counts.
  tags: mapping("Tags of the image.", is.TAGS).unread(),
};

/** Keys of a `cloud-images` entry, one of the first three (`sourceOf` in config.ts). */
const cloudImage = {
  "image-id": text("AMI.", { like: is.IMAGE }),
  "image-filters": entries(filter, "The newest image that fits.", { all: sized(1) }),
  "image-owners": textOrTexts("Accounts, or `self` and `amazon`, whose images filters may find.", {
    default: [],
    shown: "any",
    like: is.OWNER,
  }).accepted(OURS),
  "image-parameter": text("Parameter of Systems Manager that holds the AMI.", {
    like: is.PARAMETER,
  }).accepted(OURS),
};

/** Keys of a provider that only this driver reads. */
const own = {
  "region-name": text("Region.", { needed: "validator", like: is.REGION }).as("region"),
  "profile-name": text("Profile of the credentials.", { shown: "the default chain", like: NOT_EMPTY }).as(
    "profile",
  ),
  rate: field(
    "Mutating calls per second, of all providers with this profile and region; others ten times that. 0: no limit.",
    { default: 2, like: FROM_0, instead: "counts as 0: no limit" },
    FLOAT,
    (at, key) => Math.max(0, at.number(key, 2)),
  ),
  "object-storage": inner(
    section({ "bucket-name": text("Bucket.", { needed: "validator", like: is.BUCKET }) }),
    "Where uploads go first.",
    { default: null },
  )
    .map((storage) => storage?.bucketName ?? null)
    .as("bucket"),
  "image-format": oneOf("Format of uploads.", ["ova", "vhd", "vhdx", "vmdk", "raw"], { default: "raw" }),
  "image-import-timeout": seconds("For the limit of imports to free up.", { like: ABOVE_0 }).as(
    "imageImportTimeoutMs",
  ),
  "notice-queue": text(
    "URL of an SQS queue to which EventBridge sends the state changes and spot interruptions of EC2.",
    { like: is.QUEUE },
  ).accepted(OURS),
  "price-api": flag(
    "Prices that `prices` lacks are those of AWS's Price List API and spot market, for Linux.",
    { default: false },
  ).accepted(OURS),
};

/**
 * Keys of a provider of driver `aws` (docs/contract/config.md). What Nodepool has not is marked OURS; what its validator does not
 * know, though it works there, DOCUMENTED.
 */
export const awsTable = {
  ...machineKeys(180),
  own: group(own),
  limits: group({
    "max-servers": integer("Nodes at once, in each pool.", NO_LIMIT).as("instances"),
    ...limits,
  }),
  "max-resources": amounts("Limits by quota code."),
  ...imageKeys(
    { diskimage, cloudImage },
    {
      description: "Images that the cloud has.",
      named: true,
      rules: [needs("username"), exactlyOne("image-id", "image-filters", "image-parameter")],
    },
  ),
  pools: entries(section(pool), "What the provider offers, in pools.", { needed: "validator" }),
};

/** Values as they are compiled from a table above: camel case, defaults applied, times in milliseconds. */
export type LabelKeys = Values<typeof label>;
/** Settings for turning an upload of a diskimage into an AMI. */
export type AwsDiskimage = Values<typeof diskimage>;
export type VolumeKeys = Values<ReturnType<typeof volume<string | null>>>;
export type CloudImageKeys = Values<typeof cloudImage>;
export type OwnKeys = Values<typeof own>;
export type ProviderKeys = Values<typeof awsTable>;
export type PoolKeys = Values<typeof pool>;
