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
  NUMBER,
  needs,
  poolKeys,
  section,
  text,
  texts,
} from "@nodeyard/driver";
import { z } from "zod";

const { username: _, ...ansibleKeys } = loginKeys;

const networking = {
  zone: text("Zone."),
  subnet: text("Subnet."),
  "public-ipv4": flag("A public IPv4 address.", { default: false }),
  "use-internal-ip": flag("Clients use the private address.", { default: false }),
  "host-key-checking": flag("False: ready as soon as the cloud says so.", { default: true }),
};

const part = (description: string) => text(description, { needed: "validator" });

const imageFilter = section({
  "operating-system": inner(
    section({
      architecture: text("Architecture."),
      "display-name": text("Display name."),
      family: text("Family."),
      href: text("URL."),
      name: text("Name."),
      vendor: text("Vendor."),
      version: text("Version."),
      "dedicated-host-only": flag("Only for dedicated hosts."),
    }),
    "Of the image.",
  ),
  "owner-type": text("Type of the owner."),
  status: text("State of the image."),
});

const label = {
  name: text("A top-level label.", { needed: true }),
  profile: text("Profile of the instance.", { needed: true }),
  "cloud-image": text("A `cloud-images` entry of this provider."),
  diskimage: text("A `diskimages` entry of this provider."),
  "user-data": text("User data."),
};

const NAME = "must be a string that does not start with an underscore";

const pool = {
  ...poolKeys({}),
  ...networking,
  name: field(
    "Name of the pool, unique in its provider.",
    { needed: true },
    z.string({ error: NAME }).regex(/^[^_]/, { error: NAME }),
    (at, key) => at.needed(key),
  ),
  "max-servers": integer("Nodes at once.", { needed: "loader" }),
  labels: entries(section(label), "What the pool offers.", { needed: "validator" }),
};

/** Keys of a provider of driver `ibmvpc`. */
export const ibmvpc = {
  ...machineKeys(120),
  ...networking,
  vpc: text("Virtual private cloud.", { needed: true }),
  region: text("Region.", { needed: true }),
  "credentials-file": text("File with the credentials.", { shown: "the environment" }).names("file"),
  rate: field("Calls per second.", { default: 1 }, NUMBER, (at, key) => at.number(key, 1)),
  "object-storage": inner(
    section({
      "instance-name": part("Instance of the object storage."),
      endpoint: part("Its endpoint."),
      "bucket-name": part("Bucket."),
    }),
    "Where uploads go first.",
    { default: null },
  ),
  quota: inner(
    section({
      instances: integer("Nodes at once."),
      cores: integer("Cores at once."),
      ram: integer("Memory at once.", { unit: "MiB" }),
    }),
    "What the account allows, which nobody can ask for.",
  ),
  ...imageKeys(
    {
      diskimage: {
        ...ansibleKeys,
        "operating-system": text("Operating system, as the cloud calls it.", { needed: true }),
      },
      cloudImage: {
        keys: texts("Names of the SSH keys of the instance."),
        "image-href": text("URL of the image."),
        "image-id": text("Id of the image."),
        "image-name": text("Name of the image."),
        "image-filter": inner(imageFilter, "The newest image that fits."),
      },
    },
    {
      description: "Images that the cloud has.",
      named: true,
      rules: [needs("username"), exactlyOne("image-href", "image-id", "image-name", "image-filter")],
    },
  ),
  pools: entries(section(pool), "What the provider offers, in pools.", { needed: "validator" }),
};
