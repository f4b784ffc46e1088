import type { z } from "zod";
import { commonPoolKeys, connectionKeys } from "./common.ts";
import { bool, closed, int, isMapping, listOf, str } from "./vocabulary.ts";

type Keys = Readonly<Record<string, z.ZodType>>;

/** Keys of clouds with flavors, quotas and zones (docs/contract/config.md, "OpenStack keys"), as far as they mean the same in each. */

/** An entry of `diskimages`; `own` has what each cloud makes of the rest. */
export const listedDiskimage = (own: Keys) =>
  closed(
    {
      name: str("A top-level diskimage."),
      pause: bool({ description: "No uploads to this provider.", default: false }),
      ...own,
      ...connectionKeys,
    },
    ["name"],
  );

/** An entry of `cloud-images`. */
export const listedCloudImage = (own: Keys) =>
  closed({
    name: str("Referred to by labels."),
    "image-id": str("The cloud's id; not together with `image-name`."),
    "image-name": str("Name or id to look up; not together with `image-id`."),
    ...own,
    username: str("Login user."),
    "python-path": str({ description: "Ansible's interpreter.", default: "auto" }),
    "shell-type": str("Ansible's shell type."),
    ...connectionKeys,
  }).refine(
    (image) => !hasAll(image, "image-id", "image-name"),
    "has both image-id and image-name; keep one",
  );

export const flavorLabel = (own: Keys) =>
  closed(
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
      "console-log": bool({
        description: "Keep what a machine that does not come up wrote to its console, in log and journal.",
        default: false,
      }),
      ...own,
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
    .refine(
      (value) => hasAny(value, "diskimage", "cloud-image"),
      "has no image; add diskimage or cloud-image",
    )
    .refine((value) => hasAny(value, "min-ram", "flavor-name"), "has no size; add min-ram or flavor-name");

export const cloudPool = (own: Keys, label: z.ZodType) =>
  closed({
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
    ...own,
    "host-key-checking": bool({ description: "False: ready as soon as the cloud says so.", default: true }),
    labels: listOf(label, "What the pool offers."),
  });

/** Of the provider itself. */
export const cloudKeys: Keys = {
  "boot-timeout": int({ description: "For a machine to answer once it is up.", default: 60, unit: "s" }),
  "launch-timeout": int({
    description: "From the start of a launch to a machine.",
    default: 3600,
    unit: "s",
  }),
  "launch-retries": int({ description: "Attempts per node in all.", default: 3 }),
  "post-upload-hook": str("Program run after an upload: provider, image id and file as arguments."),
  "image-upload-timeout": int({ description: "For one upload.", default: 3600, unit: "s" }),
  "image-name-format": str({
    description: "Name of an uploaded image.",
    default: "{image_name}-{timestamp}",
  }),
  "nodepool-id": str({ description: "Without effect.", deprecated: true }),
};

function hasAny(value: unknown, ...keys: readonly string[]): boolean {
  return !isMapping(value) || keys.some((key) => value[key] !== undefined);
}

function hasAll(value: unknown, ...keys: readonly string[]): boolean {
  return isMapping(value) && keys.every((key) => value[key] !== undefined);
}
