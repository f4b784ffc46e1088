import {
  entries,
  exactlyOne,
  field,
  flag,
  imageKeys,
  inner,
  integer,
  loginKeys,
  machineKeys,
  mapping,
  NUMBER,
  needs,
  poolKeys,
  STRING,
  section,
  text,
} from "@nodeyard/driver";
import { z } from "zod";

const network = section({
  "resource-group": text("Its resource group.", { shown: "the provider's" }),
  network: text("Virtual network."),
  subnet: text("Subnet.", { default: "default" }),
});

const addresses = {
  ipv4: flag("An IPv4 address."),
  ipv6: flag("An IPv6 address."),
  "public-ipv4": flag("A public IPv4 address.", { default: true }),
  "public-ipv6": flag("A public IPv6 address.", { default: false }),
  "use-internal-ip": flag("Clients use the private address.", { default: false }),
  "host-key-checking": flag("False: ready as soon as the cloud says so.", { default: true }),
};

const part = (description: string) => text(description, { needed: "validator" });

const gallery = (description: string) =>
  inner(
    section({ "gallery-name": part("Gallery."), name: part("Image."), version: text("Version.") }),
    description,
    { default: null },
  );

const cloudImage = {
  password: text("Password of the user."),
  "generate-password": flag("A password by chance.", { default: false }),
  key: text("Public key of the user.", { shown: "zuul-public-key" }),
  "image-reference": inner(
    section({
      sku: part("SKU."),
      publisher: part("Publisher."),
      offer: part("Offer."),
      version: part("Version."),
    }),
    "An image of the marketplace.",
    { default: null },
  ),
  "image-id": text("Id of the image."),
  "image-filter": inner(
    section({ name: text("Name."), location: text("Location."), tags: mapping("Tags.") }),
    "The last image by name that fits.",
    { default: null },
  ),
  "community-gallery-image": gallery("An image of a community gallery."),
  "shared-gallery-image": gallery("An image of a shared gallery."),
};

const label = {
  name: text("A top-level label.", { needed: true }),
  "cloud-image": text("A `cloud-images` entry of this provider."),
  diskimage: text("A `diskimages` entry of this provider; wins over `cloud-image`."),
  "hardware-profile": inner(
    section({ "vm-size": text("Size of the machine.", { needed: true }) }),
    "What the machine is.",
    { needed: true },
  ),
  tags: mapping("Tags of the machine."),
  "dynamic-tags": mapping("The same, from templates."),
  "user-data": text("User data."),
  "custom-data": text("Custom data."),
  "volume-size": integer("Size of the disk.", { unit: "GiB" }),
};

const pool = {
  ...poolKeys({}),
  ...addresses,
  name: text("Name of the pool, unique in its provider.", { needed: true }),
  "max-servers": integer("Nodes at once.", { needed: "loader" }),
  labels: entries(section(label), "What the pool offers.", { needed: "validator" }),
};

/** Keys of a provider of driver `azure`. */
export const azure = {
  ...machineKeys(120),
  ...addresses,
  location: text("Location.", { needed: true }),
  "resource-group": text("Resource group.", { needed: true }),
  "resource-group-location": text("Its location.", { needed: true }),
  "auth-path": text("File with the credentials.", {
    needed: "validator",
    default: null,
    shown: "$AZURE_AUTH_LOCATION",
  }).names("file"),
  network: field(
    "Network, or where it is.",
    {},
    z.union([STRING, network.schema], {
      error: "must be a string, or a mapping with resource-group, network and subnet",
    }),
    () => null,
  ),
  "subnet-id": text("Id of the subnet, instead of `network`."),
  rate: field("Calls per second.", { default: 1 }, NUMBER, (at, key) => at.number(key, 1)),
  "zuul-public-key": text("Public key of users.", { deprecated: true }),
  ...imageKeys(
    {
      diskimage: {
        ...loginKeys,
        key: text("Public key of the user."),
        tags: mapping("Tags of the image."),
      },
      cloudImage,
    },
    {
      description: "Images that the cloud has.",
      named: true,
      rules: [
        needs("username"),
        exactlyOne(
          "image-reference",
          "image-id",
          "image-filter",
          "community-gallery-image",
          "shared-gallery-image",
        ),
      ],
    },
  ),
  pools: entries(section(pool), "What the provider offers, in pools.", { needed: "validator" }),
};
