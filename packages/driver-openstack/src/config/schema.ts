import {
  bool,
  closed,
  commonPoolKeys,
  connectionKeys,
  dict,
  int,
  isMapping,
  listOf,
  numberish,
  str,
} from "@nodeyard/driver";

const diskimage = closed(
  {
    name: str("A top-level diskimage."),
    pause: bool({ description: "No uploads to this provider.", default: false }),
    meta: dict("Properties of the upload, over the `metadata` of the diskimage."),
    "config-drive": bool({ description: "Servers get a config drive.", default: "the cloud's default" }),
    ...connectionKeys,
  },
  ["name"],
);

const cloudImage = closed({
  name: str("Referred to by labels."),
  "image-id": str("The cloud's id; not together with `image-name`."),
  "image-name": str("Name or id to look up; not together with `image-id`."),
  "config-drive": bool({ description: "Servers get a config drive.", default: "the cloud's default" }),
  username: str("Login user."),
  "python-path": str({ description: "Ansible's interpreter.", default: "auto" }),
  "shell-type": str("Ansible's shell type."),
  ...connectionKeys,
}).refine((image) => !hasAll(image, "image-id", "image-name"), "has both image-id and image-name; keep one");

const label = closed(
  {
    name: str("A top-level label."),
    diskimage: str("A top-level diskimage; exactly one of this and `cloud-image`."),
    "cloud-image": str("A `cloud-images` entry of this provider; exactly one of this and `diskimage`."),
    "min-ram": int({
      description: "Smallest flavor with this much; this or `flavor-name`.",
      default: 0,
      unit: "MiB",
    }),
    "flavor-name": str("Flavor, or with `min-ram` a part of its name."),
    "key-name": str("Keypair of the cloud that servers get."),
    "console-log": bool({ description: "A failed scan logs the end of the console.", default: false }),
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
    "host-key-checking": bool({
      description: "False: ready as soon as the cloud says so.",
      default: "the pool's",
    }),
  },
  ["name"],
)
  .refine(
    (value) => !hasAll(value, "diskimage", "cloud-image"),
    "has both diskimage and cloud-image; keep one",
  )
  .refine((value) => hasAny(value, "diskimage", "cloud-image"), "has no image; add diskimage or cloud-image")
  .refine((value) => hasAny(value, "min-ram", "flavor-name"), "says no size; add min-ram or flavor-name");

const pool = closed({
  ...commonPoolKeys,
  "max-cores": int({ description: "Cores at once.", default: "no limit" }),
  "max-ram": int({ description: "Memory at once.", default: "no limit", unit: "MiB" }),
  "max-volumes": int({ description: "Volumes at once.", default: "no limit" }),
  "max-volume-gb": int({ description: "Size of all volumes.", default: "no limit", unit: "GB" }),
  "ignore-provider-quota": bool({
    description: "Only the limits of the pool count, not those of the cloud.",
    default: false,
  }),
  "availability-zones": listOf(str(), {
    description: "One is chosen per request.",
    default: "all of the cloud",
  }),
  networks: listOf(str(), {
    description: "Names or ids of the networks of servers.",
    default: "the cloud's default",
  }),
  "security-groups": listOf(str(), { description: "Names or ids.", default: "the project's default" }),
  "auto-floating-ip": bool({
    description: "Servers without a public address get a floating IP where the cloud has any.",
    default: true,
  }),
  "host-key-checking": bool({ description: "False: ready as soon as the cloud says so.", default: true }),
  labels: listOf(label, "What the pool offers."),
});

/** Verdict V of spec configuration.md 3.9. */
export const schema = closed(
  {
    cloud: str("Entry of clouds.yaml."),
    "region-name": str("Region of the cloud, shown on nodes."),
    "boot-timeout": int({ description: "For a machine to answer once it is up.", default: 60, unit: "s" }),
    "launch-timeout": int({
      description: "From the start of a launch to a machine.",
      default: 3600,
      unit: "s",
    }),
    "launch-retries": int({ description: "Attempts per node in all.", default: 3 }),
    rate: numberish({
      description: "At least this long between two calls; providers with one credential keep the strictest.",
      default: "as fast as the cloud takes it",
      unit: "s between calls",
    }),
    "post-upload-hook": str("Program run after an upload: provider, image id and file as arguments."),
    "image-upload-timeout": int({ description: "For one upload.", default: 3600, unit: "s" }),
    "image-name-format": str({
      description: "Name of an uploaded image.",
      default: "{image_name}-{timestamp}",
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
    "nodepool-id": str({ description: "Without effect.", deprecated: true }),
    diskimages: listOf(diskimage, "Built images that this provider gets."),
    "cloud-images": listOf(cloudImage, "Images that the cloud has."),
    pools: listOf(pool, "What the provider offers, in pools."),
  },
  ["cloud"],
);

function hasAny(value: unknown, ...keys: readonly string[]): boolean {
  return !isMapping(value) || keys.some((key) => value[key] !== undefined);
}

function hasAll(value: unknown, ...keys: readonly string[]): boolean {
  return isMapping(value) && keys.every((key) => value[key] !== undefined);
}
