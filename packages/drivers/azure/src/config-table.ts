import { Is, Key, STRING, type Values } from "@nodeyard/driver";
import { z } from "zod";

/** The keys of an azure provider, from the innermost mapping outwards. What Azure takes is by the reference of its REST API. */

const RESOURCE = Is.pattern(
  "the id of a resource, as in /subscriptions/...",
  /^\/subscriptions\/[^/]+\/.+[^/]$/i,
  [["/subscriptions/1/resourceGroups/g/providers/Microsoft.Compute/images/i"], ["i", "/subscriptions/1/"]],
);
const GROUP = Is.pattern("the name of a resource group", /^[\p{L}\p{N}._()-]{0,89}[\p{L}\p{N}_()-]$/u, [
  ["ci-nodes", "ci_(1)"],
  ["", "a/b", "ends."],
]);
const SIZE = Is.asIn("a size", "Standard_D2s_v5", /^[A-Za-z0-9_-]+$/, ["D2s v5", ""]);
const TAGS = Key.tagGrammar(
  Is.pattern(String.raw`1 to 512 characters without <>%&\?/`, /^[^<>%&\\?/]{1,512}$/, [
    ["ci.owner"],
    ["a/b", ""],
  ]),
);
/** Azure's limit of the base64 is 65,535 for both. */
const USER_DATA = Is.bytes(49_149);

const addresses = {
  ipv4: Key.flag("A private IPv4 address.", Key.inherited("true unless only IPv6 is asked for")),
  ipv6: Key.flag("A private IPv6 address.", Key.inherited("false")),
  "public-ipv4": Key.flag("A public IPv4 address.", Key.inherited("true")),
  "public-ipv6": Key.flag("A public IPv6 address.", Key.inherited("false")),
  "use-internal-ip": Key.flag("Clients use the private address.", Key.inherited("false")),
  "host-key-checking": Key.flag("False: ready as soon as the cloud says so.", Key.inherited("true")),
};

const part = (description: string) => Key.text(description, { needed: "validator", like: Is.NOT_EMPTY });
const gallery = {
  "gallery-name": part("Gallery."),
  name: part("Image."),
  version: Key.text("Version.", { shown: "the latest", like: Is.NOT_EMPTY }),
};

const network = Key.section({
  "resource-group": Key.text("Its resource group.", { shown: "the provider's", like: GROUP }),
  network: Key.text("Virtual network.", { like: Is.NOT_EMPTY }),
  subnet: Key.text("Subnet.", { default: "default", like: Is.NOT_EMPTY }),
});

const cloudImage = {
  password: Key.text("Password of the user.").secret(),
  "generate-password": Key.flag("A random password for the user, which is not kept.", { default: false }),
  key: Key.text("Public key of the user.", { shown: "zuul-public-key", like: Is.NOT_EMPTY }),
  "image-reference": Key.optional("An image of the marketplace.", {
    sku: part("SKU."),
    publisher: part("Publisher."),
    offer: part("Offer."),
    version: part("Version, or `latest`."),
  }),
  "image-id": Key.text("Id of an image, or of a version in a gallery.", { like: RESOURCE }),
  "image-filter": Key.optional("Of the images of the resource group that fit, the last by name.", {
    name: Key.text("Name.", { like: Is.NOT_EMPTY }),
    location: Key.text("Location.", { like: Is.NOT_EMPTY }),
    tags: Key.metadata("Tags."),
  }),
  "community-gallery-image": Key.optional("An image of a community gallery.", gallery),
  "shared-gallery-image": Key.optional(
    "An image of a gallery that is shared with the subscription.",
    gallery,
  ),
};

const diskimage = {
  ...Key.loginKeys,
  key: Key.text("Public key of the user.", { like: Is.NOT_EMPTY }),
  ...Key.ours({
    "hyper-v-generation": Key.oneOf("Generation of the machines that boot it.", ["V2", "V1"], {
      default: "V2",
    }),
    "os-type": Key.oneOf("Operating system.", ["Linux", "Windows"], { default: "Linux" }),
  }),
  // The builder adds these tags to the metadata of uploads.
  tags: Key.mapping("Tags of the image.", TAGS).unread(),
};

const label = {
  "hardware-profile": Key.inner(
    Key.section({ "vm-size": Key.text("Size of the machine.", { needed: true, like: SIZE }) }),
    "What the machine is.",
    { needed: true },
  ),
  ...Key.ours({
    "use-spot": Key.spot("A spot machine, which Azure deletes when it evicts it."),
    "spot-max-price": Key.number("Most that an hour of a spot machine may cost, in US dollars.", {
      shown: "that of a regular machine",
      like: Is.FROM_0,
    }).as("maxPrice"),
  }),
  ...Key.tagKeys("Tags of the machine and its parts.", TAGS),
  "user-data": Key.userData("Data that the machine reads from the metadata service.", USER_DATA),
  "custom-data": Key.text("Data for cloud-init.", { like: USER_DATA }).secret(),
  "volume-size": Key.integer("Size of the disk.", {
    unit: "GiB",
    shown: "the image's",
    like: Is.whole(1, 4_095),
  }),
};

const pool = {
  ...addresses,
  limits: Key.limits({}, { needed: true }),
  "availability-zones": Key.texts("One is chosen per request.", {
    default: [],
    shown: "those in which Azure sells the sizes of the pool",
    like: Is.CLOUD_NAME,
  })
    .differs(
      "a machine is in a zone where the location has any, and in another where Azure has no capacity; in Nodepool Azure decides.",
    )
    .accepted(Key.OURS),
};

const provider = {
  ...Key.machineKeys(120),
  ...addresses,
  location: Key.text("Location, as in westeurope.", { needed: true, like: Is.NOT_EMPTY }),
  "resource-group": Key.text("Resource group of everything that is made; it must exist.", {
    needed: true,
    like: GROUP,
  }),
  "resource-group-location": Key.text("Without effect.", { needed: true }).unread(),
  "auth-path": Key.text("File with the credentials.", {
    needed: "validator",
    default: null,
    shown: "$AZURE_AUTH_LOCATION, else AZURE_* of the environment, else the managed identity of the host",
  }).names("file"),
  network: Key.field(
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
  "subnet-id": Key.text("Id of the subnet, instead of `network`.", { like: RESOURCE }),
  rate: Key.rate(
    "Mutating calls per second, of all providers with this subscription and location; others ten times that. 0: no limit.",
    1,
  ),
  "zuul-public-key": Key.text("Public key of users.", { deprecated: true }),
  "image-upload-timeout": Key.uploadLimit("For one upload.").accepted(Key.OURS),
};

/** The tables of driver `azure` (docs/contract/config.md). What Nodepool has not is marked Key.OURS. */
export const tables = {
  ...{ provider, pool, label },
  needed: "validator",
  perOffering: ["hardware-profile", "use-spot", "spot-max-price"],
  images: {
    ...{ diskimage, cloudImage },
    rules: [
      Key.needs("username"),
      Key.exactlyOne(
        ...["image-reference", "image-id", "image-filter", "community-gallery-image", "shared-gallery-image"],
      ),
    ],
  },
} as const;

/** Values as they are compiled from a table above: camel case, defaults applied, times in milliseconds. */
export type ProviderKeys = Values<typeof provider>;
export type CloudImageKeys = Values<typeof cloudImage>;
export type DiskimageKeys = Values<typeof diskimage>;
export type AddressKeys = Values<typeof addresses>;
