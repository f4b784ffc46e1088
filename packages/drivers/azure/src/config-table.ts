import {
  bytes,
  CLOUD_NAME,
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
  loginKeys,
  machineKeys,
  mapping,
  metadata,
  NOT_EMPTY,
  NUMBER,
  needs,
  OURS,
  oneOf,
  pattern,
  poolKeys,
  STRING,
  section,
  tagGrammar,
  tagKeys,
  text,
  texts,
  type Values,
  whole,
} from "@nodeyard/driver";
import { z } from "zod";

/** The keys of an azure provider, from the innermost mapping outwards. What Azure takes is by the reference of its REST API. */

const RESOURCE = pattern(
  "the id of a resource, as in /subscriptions/...",
  /^\/subscriptions\/[^/]+\/.+[^/]$/i,
  [["/subscriptions/1/resourceGroups/g/providers/Microsoft.Compute/images/i"], ["i", "/subscriptions/1/"]],
);
const GROUP = pattern("the name of a resource group", /^[\p{L}\p{N}._()-]{0,89}[\p{L}\p{N}_()-]$/u, [
  ["ci-nodes", "ci_(1)"],
  ["", "a/b", "ends."],
]);
const SIZE = pattern("a size, as in Standard_D2s_v5", /^[A-Za-z0-9_-]+$/, [
  ["Standard_D2s_v5"],
  ["D2s v5", ""],
]);
const TAGS = tagGrammar(
  pattern(String.raw`1 to 512 characters without <>%&\?/`, /^[^<>%&\\?/]{1,512}$/, [
    ["ci.owner"],
    ["a/b", ""],
  ]),
);
/** Azure's limit of the base64 is 65,535 for both. */
const USER_DATA = bytes(49_149);

const addresses = {
  ipv4: flag("A private IPv4 address.", inherited("true unless only IPv6 is asked for")),
  ipv6: flag("A private IPv6 address.", inherited("false")),
  "public-ipv4": flag("A public IPv4 address.", inherited("true")),
  "public-ipv6": flag("A public IPv6 address.", inherited("false")),
  "use-internal-ip": flag("Clients use the private address.", inherited("false")),
  "host-key-checking": flag("False: ready as soon as the cloud says so.", inherited("true")),
};

const part = (description: string) => text(description, { needed: "validator", like: NOT_EMPTY });
const gallery = (description: string) =>
  inner(
    section({
      "gallery-name": part("Gallery."),
      name: part("Image."),
      version: text("Version.", { shown: "the latest", like: NOT_EMPTY }),
    }),
    description,
    { default: null },
  );

const network = section({
  "resource-group": text("Its resource group.", { shown: "the provider's", like: GROUP }),
  network: text("Virtual network.", { like: NOT_EMPTY }),
  subnet: text("Subnet.", { default: "default", like: NOT_EMPTY }),
});

const cloudImage = {
  password: text("Password of the user.").secret(),
  "generate-password": flag("A random password for the user, which is not kept.", { default: false }),
  key: text("Public key of the user.", { shown: "zuul-public-key", like: NOT_EMPTY }),
  "image-reference": inner(
    section({
      sku: part("SKU."),
      publisher: part("Publisher."),
      offer: part("Offer."),
      version: part("Version, or `latest`."),
    }),
    "An image of the marketplace.",
    { default: null },
  ),
  "image-id": text("Id of an image, or of a version in a gallery.", { like: RESOURCE }),
  "image-filter": inner(
    section({
      name: text("Name.", { like: NOT_EMPTY }),
      location: text("Location.", { like: NOT_EMPTY }),
      tags: metadata("Tags."),
    }),
    "Of the images of the resource group that fit, the last by name.",
    { default: null },
  ),
  "community-gallery-image": gallery("An image of a community gallery."),
  "shared-gallery-image": gallery("An image of a gallery that is shared with the subscription."),
};

const diskimage = {
  ...loginKeys,
  key: text("Public key of the user.", { like: NOT_EMPTY }),
  "hyper-v-generation": oneOf("Generation of the machines that boot it.", ["V2", "V1"], {
    default: "V2",
  }).accepted(OURS),
  "os-type": oneOf("Operating system.", ["Linux", "Windows"], { default: "Linux" }).accepted(OURS),
  // The builder adds these tags to the metadata of uploads.
  tags: mapping("Tags of the image.", TAGS).unread(),
};

const label = {
  name: text("A top-level label.", { needed: true }),
  "cloud-image": text("A `cloud-images` entry of this provider."),
  diskimage: text("A `diskimages` entry of this provider; wins over `cloud-image`."),
  "hardware-profile": inner(
    section({ "vm-size": text("Size of the machine.", { needed: true, like: SIZE }) }),
    "What the machine is.",
    { needed: true },
  ),
  "use-spot": flag("A spot machine, which Azure deletes when it evicts it.", { default: false })
    .accepted(OURS)
    .as("spot"),
  "spot-max-price": field(
    "Most that an hour of a spot machine may cost, in US dollars.",
    { default: null, shown: "that of a regular machine", like: FROM_0 },
    NUMBER,
    (at, key) => (at.has(key) ? at.number(key, 0) : null),
  )
    .accepted(OURS)
    .as("maxPrice"),
  ...tagKeys("Tags of the machine and its parts.", TAGS),
  "user-data": text("Data that the machine reads from the metadata service.", { like: USER_DATA }).secret(),
  "custom-data": text("Data for cloud-init.", { like: USER_DATA }).secret(),
  "volume-size": integer("Size of the disk.", { unit: "GiB", shown: "the image's", like: whole(1, 4_095) }),
};

const pool = {
  ...poolKeys({}),
  ...addresses,
  name: text("Name of the pool, unique in its provider.", { needed: true }),
  limits: group({
    "max-servers": integer("Nodes at once; 0 or less: the pool declines everything.", { needed: "loader" })
      .as("instances")
      .differs(
        "a request that waits for room stays `requested`, without a lock and without nodes; in Nodepool it is `pending` and keeps both.",
      ),
  }),
  "availability-zones": texts("One is chosen per request.", {
    default: [],
    shown: "those in which Azure sells the sizes of the pool",
    like: CLOUD_NAME,
  })
    .differs(
      "a machine is in a zone where the location has any, and in another where Azure has no capacity; in Nodepool Azure decides.",
    )
    .accepted(OURS),
  labels: entries(section(label), "What the pool offers.", { needed: "validator" }),
};

const SOURCES = [
  "image-reference",
  "image-id",
  "image-filter",
  "community-gallery-image",
  "shared-gallery-image",
];

/** Keys of a provider of driver `azure` (docs/contract/config.md). What Nodepool has not is marked OURS. */
export const azureTable = {
  ...machineKeys(120),
  ...addresses,
  location: text("Location, as in westeurope.", { needed: true, like: NOT_EMPTY }),
  "resource-group": text("Resource group of everything that is made; it must exist.", {
    needed: true,
    like: GROUP,
  }),
  "resource-group-location": text("Without effect.", { needed: true }).unread(),
  "auth-path": text("File with the credentials.", {
    needed: "validator",
    default: null,
    shown: "$AZURE_AUTH_LOCATION, else AZURE_* of the environment, else the managed identity of the host",
  }).names("file"),
  network: field(
    "Virtual network of the resource group, whose subnet `default` counts, or where it is.",
    {},
    z.union([STRING, network.schema], {
      error: "must be a string, or a mapping with resource-group, network and subnet",
    }),
    (at, key): ReturnType<typeof network.read> | null => {
      if (typeof at.raw[key] === "string")
        return { network: at.text(key, null), resourceGroup: null, subnet: "default" };
      return at.has(key) ? (network.read(at.inner(key)) ?? null) : null;
    },
  ),
  "subnet-id": text("Id of the subnet, instead of `network`.", { like: RESOURCE }),
  rate: field(
    "Mutating calls per second, of all providers with this subscription and location; others ten times that. 0: no limit.",
    { default: 1, like: FROM_0, instead: "counts as 0: no limit" },
    NUMBER,
    (at, key) => Math.max(0, at.number(key, 1)),
  ),
  "zuul-public-key": text("Public key of users.", { deprecated: true }),
  ...imageKeys(
    { diskimage, cloudImage },
    {
      description: "Images that the cloud has.",
      named: true,
      rules: [needs("username"), exactlyOne(...SOURCES)],
    },
  ),
  "image-upload-timeout": integer("For one upload.", { default: 3600, unit: "s", like: whole(1) })
    .as("uploadMs")
    .map((seconds) => seconds * 1_000)
    .accepted(OURS),
  pools: entries(section(pool), "What the provider offers, in pools.", { needed: "validator" }),
};

/** Values as they are compiled from a table above: camel case, defaults applied, times in milliseconds. */
export type ProviderKeys = Values<typeof azureTable>;
export type PoolKeys = Values<typeof pool>;
export type LabelKeys = Values<typeof label>;
export type CloudImageKeys = Values<typeof cloudImage>;
export type DiskimageKeys = Values<typeof diskimage>;
export type AddressKeys = Values<typeof addresses>;
