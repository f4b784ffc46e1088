import {
  DOCUMENTED,
  entries,
  flag,
  imageKeys,
  integer,
  launchKeys,
  poolKeys,
  section,
  text,
} from "@nodeyard/driver";

const label = {
  name: text("A top-level label.", { needed: true }),
  "cloud-image": text("A `cloud-images` entry of this provider.", { needed: "validator" }),
  "instance-type": text("Machine type.", { needed: true }),
  "volume-type": text("Type of the disk.", { default: "pd-standard" }),
  "volume-size": integer("Size of the disk.", { default: 10, unit: "GiB" }),
};

const pool = {
  ...poolKeys({}),
  name: text("Name of the pool, unique in its provider.", { needed: true }),
  "use-internal-ip": flag("Clients use the private address.", { default: false }),
  "host-key-checking": flag("False: ready as soon as the cloud says so.", { default: true }).accepted(
    DOCUMENTED,
  ),
  labels: entries(section(label), "What the pool offers.", { needed: "validator" }),
};

const { "cloud-images": cloudImages } = imageKeys(
  {
    diskimage: {},
    cloudImage: {
      "image-id": text("Id of the image."),
      "image-project": text("Project of the family."),
      "image-family": text("The newest image of it."),
      key: text("Public key of the user."),
    },
  },
  { description: "Images that the cloud has.", named: "loader" },
);

/** Keys of a provider of driver `gce`. */
export const gce = {
  ...launchKeys({}),
  project: text("Project.", { needed: "validator" }),
  region: text("Region.", { needed: "validator" }),
  zone: text("Zone.", { needed: "validator" }),
  "rate-limit": integer("Without effect.", { deprecated: true }).unused(),
  "cloud-images": cloudImages,
  pools: entries(section(pool), "What the provider offers, in pools.", { needed: "validator" }),
};
