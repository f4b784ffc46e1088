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
import { knobsSchema } from "./knobs-schema.ts";

const diskimage = closed(
  {
    name: str("A top-level diskimage."),
    pause: bool({ description: "No uploads to this provider.", default: false }),
    meta: dict('Metadata of the upload; `SHOULD_FAIL: "true"` makes every launch from it fail.'),
    "config-drive": bool("Accepted; nothing in a fake cloud reads it."),
    ...connectionKeys,
  },
  ["name"],
);

const cloudImage = closed({
  name: str("Referred to by labels."),
  "image-id": str("The cloud's id; not together with `image-name`."),
  "image-name": str("Name or id to look up; not together with `image-id`."),
  "config-drive": bool("Accepted; nothing in a fake cloud reads it."),
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
    "key-name": str("Accepted; a fake cloud has no keypairs."),
    "console-log": bool({
      description: "Keep what a machine that does not come up wrote to its console, in log and journal.",
      default: false,
    }),
    "boot-from-volume": bool({ description: "Accepted; a fake cloud has no volumes.", default: false }),
    "volume-size": int({ description: "Accepted; a fake cloud has no volumes.", default: 50, unit: "GB" }),
    "instance-properties": dict("Accepted; nothing in a fake cloud reads it."),
    "dynamic-instance-properties": dict("Accepted; nothing in a fake cloud reads it."),
    userdata: str("Accepted; nothing in a fake cloud reads it."),
    networks: listOf(str(), { description: "Networks of the node.", default: "the pool's" }),
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
    description: "Only the pool's limits count, not the cloud's quota.",
    default: false,
  }),
  "availability-zones": listOf(str(), {
    description: "One is chosen per request.",
    default: "all of the cloud",
  }),
  networks: listOf(str(), "Names; `fake-ipv6-network-name` gives IPv6."),
  "security-groups": listOf(str(), "Accepted; nothing in a fake cloud reads it."),
  "auto-floating-ip": bool({
    description: "Accepted; a fake cloud has no floating addresses.",
    default: true,
  }),
  "host-key-checking": bool({ description: "False: ready as soon as the cloud says so.", default: true }),
  labels: listOf(label, "What the pool offers."),
});

/** The keys of openstack (spec configuration.md 3.9), and `fake`, which is ours. */
export const schema = closed(
  {
    cloud: str("Name of the cloud; providers that name one cloud share it."),
    "region-name": str("Region shown on nodes."),
    "boot-timeout": int({ description: "For a machine to answer once it is up.", default: 60, unit: "s" }),
    "launch-timeout": int({
      description: "From the start of a launch to a machine.",
      default: 3600,
      unit: "s",
    }),
    "launch-retries": int({ description: "Attempts per node in all.", default: 3 }),
    rate: numberish({
      description: "Accepted; a fake cloud needs no protection.",
      default: 1,
      unit: "s between calls",
    }),
    "post-upload-hook": str("Program run after an upload: provider, image id and file as arguments."),
    "image-upload-timeout": int({ description: "For one upload.", default: 3600, unit: "s" }),
    "image-name-format": str({
      description: "Name of an uploaded image.",
      default: "{image_name}-{timestamp}",
    }),
    "clean-floating-ips": bool({
      description: "Accepted; a fake cloud has no floating addresses.",
      default: false,
    }),
    "port-cleanup-interval": int({
      description: "Accepted; a fake cloud has no ports.",
      default: 600,
      unit: "s",
    }),
    "nodepool-id": str({ description: "Without effect.", deprecated: true }),
    diskimages: listOf(diskimage, "Built images that this provider gets."),
    "cloud-images": listOf(cloudImage, "Images that the cloud has."),
    pools: listOf(pool, "What the provider offers, in pools."),
    fake: knobsSchema,
  },
  ["cloud"],
);

function hasAny(value: unknown, ...keys: readonly string[]): boolean {
  return !isMapping(value) || keys.some((key) => value[key] !== undefined);
}

function hasAll(value: unknown, ...keys: readonly string[]): boolean {
  return isMapping(value) && keys.every((key) => value[key] !== undefined);
}
