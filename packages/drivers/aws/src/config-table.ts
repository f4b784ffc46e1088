import { FLOAT, Is, Key, LIST, type Values } from "@nodeyard/driver";
import * as aws from "./grammar.ts";

/** The keys of an aws provider, from the innermost mapping outwards. */

/** Both spellings of the keys are in use; the lower-case one counts first. */
const filter = Key.section({
  name: Key.text("Name of the filter.", { like: Is.NOT_EMPTY }),
  Name: Key.text("The same.", { like: Is.NOT_EMPTY }),
  values: Key.texts("Values that it takes.", { all: Is.sized(1) }),
  Values: Key.texts("The same.", { all: Is.sized(1) }),
});

/** Keys of a root volume. */
const volume = <T extends string | null>(type: T) => ({
  "volume-type": Key.text("Type of the root volume.", {
    ...{ default: type, shown: type ?? "the image's", like: aws.VOLUME_TYPE },
  }),
  "volume-size": Key.integer("Size of the root volume.", {
    ...{ shown: "the image's", unit: "GiB", like: aws.VOLUME_SIZE },
  }),
  iops: Key.integer("Of the root volume.", { like: aws.IOPS }),
  throughput: Key.integer("Of the root volume.", { unit: "MiB/s", like: aws.THROUGHPUT }),
});

/** A label has a fleet or an instance type, never both (`atMostOne` at the pool). */
const fleet = Key.section({
  "instance-types": Key.field(
    "Instance types to choose from, the preferred one first.",
    { needed: "validator", all: Is.sized(1), like: aws.INSTANCE_TYPE },
    LIST,
    (at, key) => at.texts(key),
  ),
  "allocation-strategy": Key.oneOf(
    "How EC2 chooses.",
    ["prioritized", "price-capacity-optimized", "capacity-optimized", "diversified", "lowest-price"],
    { needed: "validator" },
  ),
});

const label = {
  "instance-type": Key.text("Instance type; not together with `fleet`.", { like: aws.INSTANCE_TYPE }),
  fleet: Key.inner(fleet, "A fleet of one instance.", { default: null }),
  "key-name": Key.text("Key pair of the instance.", { needed: "validator", like: Is.CLOUD_NAME }),
  "ebs-optimized": Key.flag("Dedicated bandwidth to volumes.", { default: false }),
  "use-spot": Key.spot("A spot instance."),
  "dedicated-host": Key.flag("On a host of its own; needs the pool's `availability-zone`.", {
    default: false,
  }),
  ...volume(null),
  ...Key.ours({
    "volume-encrypted": Key.flag("The root volume is encrypted, whatever the image and the account say.", {
      default: false,
    }),
    "volume-kms-key": Key.text("Key of that encryption: id, ARN or alias.", {
      shown: "the account's",
      like: aws.PARAMETER,
    }),
  }),
  userdata: Key.userData("User data.", aws.USER_DATA),
  "iam-instance-profile": Key.inner(
    Key.section(
      {
        name: Key.text("Name of the profile.", { like: aws.PROFILE }),
        arn: Key.text("Its ARN.", { like: aws.PROFILE_ARN }),
      },
      Key.atMostOne("name", "arn"),
    ),
    "Profile of the instance.",
    { default: null, all: aws.NAME_OR_ARN, instead: "gives the instance none" },
  ).as("profile"),
  imdsv2: Key.oneOfOrNull("Whether the metadata service wants tokens.", ["required", "optional"]),
  ...Key.tagKeys("Tags of the instance and its volumes.", aws.TAGS),
};

const pool = {
  limits: Key.limits(Key.sizeLimits),
  "max-resources": Key.amounts("Limits by quota code, over the provider's."),
  "security-group-id": Key.text("Security group.", { like: aws.SECURITY_GROUP }).as("securityGroup"),
  "subnet-id": Key.text("Subnet.", { like: aws.SUBNET }),
  "subnet-ids": Key.texts("Subnets, of as many zones as there are; instead of `subnet-id`.", {
    like: aws.SUBNET,
  }).accepted(Key.OURS),
  "public-ipv4": Key.flag("A public IPv4 address.", { default: true }),
  "public-ipv6": Key.flag("A public IPv6 address.", { default: false }),
  "public-ip-address": Key.flag("Older name of `public-ipv4`.", { deprecated: true }),
  "use-internal-ip": Key.flag("Clients use the private address.", { default: false }).accepted(
    Key.DOCUMENTED,
  ),
  "host-key-checking": Key.flag("False: ready as soon as the cloud says so.", { default: true }),
  "availability-zone": Key.text("Zone.", { shown: "the zones of the subnets", like: aws.ZONE }).differs(
    "without it, one of the zones of the pool's subnets is chosen per request, and another where it has no capacity; in Nodepool AWS decides.",
  ),
};

/** Keys of a `diskimages` entry: how its uploads become AMIs, and what labels of the image take over. */
const diskimage = {
  ...Key.loginKeys,
  architecture: Key.text("Architecture.", { default: "x86_64", like: aws.ARCHITECTURE }),
  "ena-support": Key.flag("Enhanced networking.", { default: true }),
  ...volume("gp3"),
  "import-method": Key.oneOf("How an upload becomes an image.", ["snapshot", "ebs-direct", "image"], {
    default: "snapshot",
  }),
  "imds-support": Key.oneOfOrNull("Version of the metadata service.", ["v2.0"]),
  ...Key.ours({
    "copy-to": Key.texts("Regions that the image is copied to.", { default: [], like: aws.REGION }),
    "share-with": Key.texts("Accounts that may launch the image.", { default: [], like: aws.ACCOUNT }),
    "deprecate-after": Key.seconds("After the upload; from then on AWS shows the image to its owner alone.", {
      default: null,
      shown: "never",
      like: Is.ABOVE_0,
    }).as("deprecateAfterMs"),
  }),
  // The builder adds these tags to the metadata of uploads. On equal keys the tag counts.
  tags: Key.mapping("Tags of the image.", aws.TAGS).unread(),
};

/** Keys of a `cloud-images` entry, one of the first three (`sourceOf` in config.ts). */
const cloudImage = {
  "image-id": Key.text("AMI.", { like: aws.IMAGE }),
  "image-filters": Key.entries(filter, "The newest image that fits.", { all: Is.sized(1) }),
  ...Key.ours({
    "image-owners": Key.textOrTexts("Accounts, or `self` and `amazon`, whose images filters may find.", {
      default: [],
      shown: "any",
      like: aws.OWNER,
    }),
    "image-parameter": Key.text("Parameter of Systems Manager that holds the AMI.", { like: aws.PARAMETER }),
  }),
};

const provider = {
  ...Key.machineKeys(180),
  "region-name": Key.text("Region.", { needed: "validator", like: aws.REGION }).as("region"),
  "profile-name": Key.text("Profile of the credentials.", {
    shown: "the default chain",
    like: Is.NOT_EMPTY,
  }).as("profile"),
  rate: Key.rate(
    "Mutating calls per second, of all providers with this profile and region; others ten times that. 0: no limit.",
    2,
    FLOAT,
  ),
  "object-storage": Key.optional("Where uploads go first.", {
    "bucket-name": Key.text("Bucket.", { needed: "validator", like: aws.BUCKET }),
  })
    .map((storage) => storage?.bucketName ?? null)
    .as("bucket"),
  "image-format": Key.oneOf("Format of uploads.", ["ova", "vhd", "vhdx", "vmdk", "raw"], { default: "raw" }),
  "image-import-timeout": Key.seconds("For the limit of imports to free up.", { like: Is.ABOVE_0 }).as(
    "imageImportTimeoutMs",
  ),
  ...Key.ours({
    "notice-queue": Key.text(
      "URL of an SQS queue to which EventBridge sends the state changes and spot interruptions of EC2.",
      { like: aws.QUEUE },
    ),
    "price-api": Key.flag(
      "Prices that `prices` lacks are those of AWS's Price List API and spot market, for Linux.",
      { default: false },
    ),
  }),
  limits: Key.group({
    "max-servers": Key.integer("Nodes at once, in each pool.", Key.NO_LIMIT).as("instances"),
    ...Key.sizeLimits,
  }),
  "max-resources": Key.amounts("Limits by quota code."),
};

/** The tables of driver `aws` (docs/contract/config.md): OURS is what Nodepool lacks, DOCUMENTED what works there and its validator refuses. */
export const tables = {
  ...{ provider, pool, label },
  needed: "validator",
  labelRules: [Key.atMostOne("cloud-image", "diskimage"), Key.atMostOne("instance-type", "fleet")],
  perOffering: ["instance-type", "fleet", "use-spot"],
  images: {
    ...{ diskimage, cloudImage },
    rules: [Key.needs("username"), Key.exactlyOne("image-id", "image-filters", "image-parameter")],
  },
} as const;

/** Settings for turning an upload of a diskimage into an AMI. */
export type AwsDiskimage = Values<typeof diskimage>;
export type VolumeKeys = Values<ReturnType<typeof volume<string | null>>>;
