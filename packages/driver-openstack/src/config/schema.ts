import {
  bool,
  closed,
  cloudKeys,
  cloudPool,
  dict,
  flavorLabel,
  int,
  listedCloudImage,
  listedDiskimage,
  listOf,
  numberish,
  str,
} from "@nodeyard/driver";

const configDrive = {
  "config-drive": bool({ description: "Servers get a config drive.", default: "the cloud's default" }),
};

const diskimage = listedDiskimage({
  meta: dict("Properties of the upload, over the `metadata` of the diskimage."),
  ...configDrive,
});

const label = flavorLabel({
  "key-name": str("Keypair of the cloud that servers get."),
  "boot-from-volume": bool({
    description: "The root disk is a volume that goes with the server.",
    default: false,
  }),
  "volume-size": int({ description: "Size of that volume.", default: 50, unit: "GB" }),
  "instance-properties": dict("Metadata of the server."),
  "dynamic-instance-properties": dict("The same, from templates such as `{request.tenant_name}`."),
  userdata: str("User data for cloud-init."),
  networks: listOf(str(), {
    description: "Names or ids; instead of the pool's, also when empty.",
    default: "the pool's",
  }),
});

const pool = cloudPool(
  {
    networks: listOf(str(), {
      description: "Names or ids of the networks of servers.",
      default: "the cloud's default",
    }),
    "security-groups": listOf(str(), { description: "Names or ids.", default: "the project's default" }),
    "auto-floating-ip": bool({
      description: "Servers without a public address get a floating IP where the cloud has any.",
      default: true,
    }),
  },
  label,
);

/** The validator's schema (docs/contract/config.md, "OpenStack keys"). */
export const schema = closed(
  {
    cloud: str("Entry of clouds.yaml."),
    "region-name": str("Region of the cloud, shown on nodes."),
    ...cloudKeys,
    rate: numberish({
      description: "At least this long between two calls; providers with one credential keep the strictest.",
      default: "as fast as the cloud takes it",
      unit: "s between calls",
    }),
    "clean-floating-ips": bool({
      description:
        "Without effect: floating IPs that we made are always deleted with their node, others never.",
      default: false,
    }),
    "port-cleanup-interval": int({
      description: "0: ports that outlive their server are left alone; else they go with the leak sweep.",
      default: 600,
      unit: "s",
    }),
    diskimages: listOf(diskimage, "Built images that this provider gets."),
    "cloud-images": listOf(listedCloudImage(configDrive), "Images that the cloud has."),
    pools: listOf(pool, "What the provider offers, in pools."),
  },
  ["cloud"],
);
