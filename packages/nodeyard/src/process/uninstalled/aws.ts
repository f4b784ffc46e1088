import {
  entries,
  FLOAT,
  field,
  flag,
  imageKeys,
  inner,
  integer,
  LIST,
  listOf,
  loginKeys,
  mapping,
  NO_LIMIT,
  poolKeys,
  STRING,
  section,
  text,
} from "@nodeyard/driver";
import {
  amounts,
  atMostOne,
  DOCUMENTED,
  exactlyOne,
  machineKeys,
  needs,
  oneOf,
  oneOfOrNull,
} from "./keys.ts";

const filter = section({
  name: text("Name of the filter."),
  Name: text("The same."),
  values: field("Values that it takes.", {}, listOf(STRING), (at, key) => at.texts(key)),
  Values: field("The same.", {}, listOf(STRING), (at, key) => at.texts(key)),
});

const limits = {
  "max-cores": integer("Cores at once.", NO_LIMIT).as("cores"),
  "max-ram": integer("Memory at once.", { ...NO_LIMIT, unit: "MiB" }).as("ram"),
};

const label = {
  name: text("A top-level label.", { needed: true }),
  "cloud-image": text("A `cloud-images` entry of this provider."),
  diskimage: text("A `diskimages` entry of this provider."),
  "instance-type": text("Instance type; not together with `fleet`."),
  fleet: inner(
    section({
      "instance-types": field("Instance types to choose from.", { needed: "validator" }, LIST, (at, key) =>
        at.texts(key),
      ),
      "allocation-strategy": oneOf(
        "How EC2 chooses.",
        ["prioritized", "price-capacity-optimized", "capacity-optimized", "diversified", "lowest-price"],
        { needed: "validator" },
      ),
    }),
    "A fleet of one instance.",
    { default: null },
  ),
  "key-name": text("Key pair of the instance.", { needed: "validator" }),
  "ebs-optimized": flag("Dedicated bandwidth to volumes.", { default: false }),
  "use-spot": flag("A spot instance.", { default: false }),
  "dedicated-host": flag("On a host of its own; needs the pool's `availability-zone`.", { default: false }),
  "volume-type": text("Type of the root volume.", { shown: "the image's" }),
  "volume-size": integer("Size of the root volume.", { shown: "the image's", unit: "GiB" }),
  iops: integer("Of the root volume."),
  throughput: integer("Of the root volume.", { unit: "MiB/s" }),
  userdata: text("User data."),
  "iam-instance-profile": inner(
    section({ name: text("Name of the profile."), arn: text("Its ARN.") }, atMostOne("name", "arn")),
    "Profile of the instance.",
    { default: null },
  ),
  imdsv2: oneOfOrNull("Whether the metadata service wants tokens.", ["required", "optional"]),
  tags: mapping("Tags of the instance."),
  "dynamic-tags": mapping("The same, from templates."),
};

const pool = {
  ...poolKeys(limits),
  name: text("Name of the pool, unique in its provider.", { needed: true }),
  "max-resources": amounts("Limits by quota code, over the provider's."),
  "security-group-id": text("Security group."),
  "subnet-id": text("Subnet."),
  "public-ipv4": flag("A public IPv4 address.", { default: true }),
  "public-ipv6": flag("A public IPv6 address.", { default: false }),
  "public-ip-address": flag("Older name of `public-ipv4`.", { deprecated: true }),
  "use-internal-ip": flag("Clients use the private address.", { default: false }).accepted(DOCUMENTED),
  "host-key-checking": flag("False: ready as soon as the cloud says so.", { default: true }),
  "availability-zone": text("Zone.", { shown: "AWS decides" }),
  labels: entries(
    section(label, atMostOne("cloud-image", "diskimage"), atMostOne("instance-type", "fleet")),
    "What the pool offers.",
    { needed: "validator" },
  ),
};

/** Keys of a provider of driver `aws`. */
export const aws = {
  ...machineKeys(180),
  "region-name": text("Region.", { needed: "validator" }),
  "profile-name": text("Profile of the credentials."),
  rate: field("Calls per second.", { default: 2 }, FLOAT, (at, key) => at.number(key, 2)),
  "object-storage": inner(
    section({ "bucket-name": text("Bucket.", { needed: "validator" }) }),
    "Where uploads go first.",
    { default: null },
  ),
  "image-format": oneOf("Format of uploads.", ["ova", "vhd", "vhdx", "vmdk", "raw"], { default: "raw" }),
  "image-import-timeout": integer("For the limit of imports to free up.", { unit: "s" }),
  "max-servers": integer("Nodes at once, in each pool.", NO_LIMIT),
  ...limits,
  "max-resources": amounts("Limits by quota code."),
  ...imageKeys(
    {
      diskimage: {
        ...loginKeys,
        architecture: text("Architecture.", { default: "x86_64" }),
        "ena-support": flag("Enhanced networking.", { default: true }),
        "volume-size": integer("Size of the root volume.", { unit: "GiB" }),
        "volume-type": text("Type of the root volume.", { default: "gp3" }),
        iops: integer("Of the root volume."),
        throughput: integer("Of the root volume.", { unit: "MiB/s" }),
        "import-method": oneOf("How an upload becomes an image.", ["snapshot", "ebs-direct", "image"], {
          default: "snapshot",
        }),
        "imds-support": oneOfOrNull("Version of the metadata service.", ["v2.0"]),
        tags: mapping("Tags of the image."),
      },
      cloudImage: {
        "image-id": text("AMI."),
        "image-filters": entries(filter, "The newest image that fits."),
      },
    },
    {
      description: "Images that the cloud has.",
      named: true,
      rules: [needs("username"), exactlyOne("image-id", "image-filters")],
    },
  ),
  pools: entries(section(pool), "What the provider offers, in pools.", { needed: "validator" }),
};
