import {
  type ConfigOf,
  cloudConfig,
  Is,
  Key,
  marketType,
  type OrderOf,
  type OwnOf,
  type Reader,
} from "@nodeyard/driver";
import * as gce from "./grammar.ts";

const provider = {
  ...Key.launchKeys({}),
  ...Key.uploadKeys,
  project: Key.text("Project.", { needed: true, like: gce.PROJECT }),
  region: Key.text("Region.", { needed: "validator", default: "", shown: "the zone's", like: gce.REGION }),
  zone: Key.text("Zone.", { needed: "validator", default: null, shown: "all of the region", like: gce.ZONE }),
  rate: Key.number("Calls of the API per second, for all providers with one credential; 0: no limit.", {
    default: 10,
    like: Is.FROM_0,
  })
    .accepted("is read by Nodepool's loader, and refused by its validator")
    .differs("is 10 unless it is set; in Nodepool 2."),
  "rate-limit": Key.integer("Without effect.", { deprecated: true }).unused(),
  ...Key.ours({
    "credentials-file": Key.text("Key of a service account, or configuration of a workload identity.", {
      shown: "application default credentials",
      like: Is.NOT_EMPTY,
    }).names("file"),
    "api-endpoint": Key.text(
      "Address of Compute Engine and of Cloud Storage, such as one of Private Service Connect.",
      { shown: "Google's", like: gce.ENDPOINT },
    ),
    bucket: Key.text("Bucket for uploads before they become images.", { like: gce.BUCKET }),
  }),
};

const pool = {
  "use-internal-ip": Key.flag("Clients use the private address.", { default: false }),
  "host-key-checking": Key.flag("False: ready as soon as the cloud says so.", { default: true }).accepted(
    Key.DOCUMENTED,
  ),
  ...Key.ours({
    "availability-zones": Key.texts("Zones of the region, of which one is chosen per request.", {
      default: [],
      shown: "the provider's zone",
      like: gce.ZONE,
    }),
    network: Key.text("Network of the machines.", { default: "default", like: gce.NETWORK }),
    subnetwork: Key.text("Its subnetwork in the region.", { shown: "the network's", like: gce.NETWORK }),
    "network-tags": Key.texts("Tags by which firewall rules name the machines.", {
      default: [],
      like: gce.NETWORK_TAG,
    }),
    "public-ipv4": Key.flag("A public IPv4 address.", { default: true }),
  }),
};

const label = {
  "instance-type": Key.text("Machine type.", { needed: true, like: gce.MACHINE_TYPE }),
  "volume-type": Key.text("Type of the boot disk.", { default: "pd-standard", like: gce.DISK_TYPE }),
  "volume-size": Key.integer("Size of the boot disk.", { default: 10, unit: "GiB", like: gce.DISK_SIZE }),
  ...Key.ours({
    "use-spot": Key.spot("A spot machine, which Google may take back."),
    "max-run-duration": Key.seconds(
      "Google itself deletes the machine this long after its start, whatever becomes of Nodeyard. More than any job takes.",
      { shown: "no limit", like: gce.RUN_LIMIT },
    ).as("maxRunMs"),
    "service-account": Key.text("The machine's own account, with all scopes.", {
      shown: "none",
      like: gce.SERVICE_ACCOUNT,
    }),
    userdata: Key.userData("User data for cloud-init.", gce.USER_DATA),
  }),
};

const publicKey = Key.text("Public key that the image's user gets.", { like: Is.NOT_EMPTY });

const cloudImage = {
  "image-id": Key.text(
    "Path of the image, as in projects/debian-cloud/global/images/debian-12-bookworm-v20261110.",
    { like: Is.CLOUD_NAME },
  ),
  "image-project": Key.text("Project of the family.", { shown: "the provider's", like: gce.PROJECT }),
  "image-family": Key.text("The newest image of it.", { like: gce.FAMILY }),
  key: publicKey,
};

const diskimage = {
  family: Key.text("Family of the uploaded images.", { like: gce.FAMILY }),
  key: publicKey,
};

/** What a label takes over from its image. */
interface ImageFacts {
  /** What a boot disk is made from; null for a diskimage: the id of its upload. Empty: the image has no source. */
  readonly sourceImage: string | null;
  readonly key: string | null;
}

const none: ImageFacts = { sourceImage: null, key: null };

function refuseZone(zone: string, region: string, at: Reader, name: string): void {
  if (!zone.startsWith(`${region}-`))
    at.error(name, `has ${zone}, which is not in ${region}; write a zone of the region`);
}

/** The keys of a gce provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const gceConfig = cloudConfig(
  "gce",
  {
    ...{ provider, pool, label, needed: "validator" },
    perOffering: ["instance-type", "use-spot"],
    labelRules: [Key.atLeastOne("image", "cloud-image", "diskimage")],
    images: { diskimage, cloudImage, named: "loader", uploads: Key.OURS },
  },
  {
    provider({ at, own, zone, bucket, diskimages }) {
      const region = own.region || (zone?.replace(/-[a-z]$/, "") ?? "");
      if (region === "") at.error("region", "is missing; add it, or a zone");
      if (zone !== null) refuseZone(zone, region, at, "zone");
      if (diskimages.length > 0 && bucket === null)
        at.useless("diskimages", "cannot be uploaded without a bucket; add bucket");
      /** Families of uploaded images, by diskimage. */
      const families = new Map(diskimages.map(({ name, own }) => [name, own.family]));
      return { own: { ...own, region, families } };
    },
    images: {
      none,
      diskimage: ({ key }): ImageFacts => ({ sourceImage: null, key }),
      // Google resolves a family when a machine is made, so that a new image counts at once.
      cloudImage: ({ imageId, imageProject, imageFamily, key }, _name, { project }): ImageFacts => ({
        sourceImage:
          imageId ??
          (imageFamily ? `projects/${imageProject ?? project}/global/images/family/${imageFamily}` : null),
        key,
      }),
    },
    pool({ at, own, availabilityZones }, { own: { region, zone } }) {
      for (const one of availabilityZones) refuseZone(one, region, at, "availability-zones");
      return {
        availabilityZones: availabilityZones.length > 0 || zone === null ? availabilityZones : [zone],
        own,
      };
    },
    label({ at, own, bootImage: image }, { own: { publicIpv4 } }) {
      if (image?.kind === "cloud-image" && own.sourceImage === null)
        at.useless(
          "cloud-image",
          `names ${image.name}, which has neither image-id nor image-family; add one`,
        );
      /** Of the pool: an address counts for the quota. */
      return { own: { ...own, publicIpv4 } };
    },
    typeOf: ({ own: { instanceType, spot } }) => marketType(instanceType, spot),
  },
);

/** A compiled provider of the gce driver. */
export type GceProviderConfig = ConfigOf<typeof gceConfig>;
export type GceProviderOwn = OwnOf<typeof gceConfig, "provider">;
export type GcePoolOwn = OwnOf<typeof gceConfig, "pool">;
export type GceLabelOwn = OwnOf<typeof gceConfig, "label">;
export type GceOrder = OrderOf<typeof gceConfig>;
