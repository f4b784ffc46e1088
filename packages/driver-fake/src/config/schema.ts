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
import { knobsSchema } from "./knobs-schema.ts";

const configDrive = { "config-drive": bool("Accepted; nothing in a fake cloud reads it.") };

const diskimage = listedDiskimage({
  meta: dict('Metadata of the upload; `SHOULD_FAIL: "true"` makes every launch from it fail.'),
  ...configDrive,
});

const label = flavorLabel({
  "key-name": str("Accepted; a fake cloud has no keypairs."),
  "boot-from-volume": bool({ description: "Accepted; a fake cloud has no volumes.", default: false }),
  "volume-size": int({ description: "Accepted; a fake cloud has no volumes.", default: 50, unit: "GB" }),
  "instance-properties": dict("Accepted; nothing in a fake cloud reads it."),
  "dynamic-instance-properties": dict("Accepted; nothing in a fake cloud reads it."),
  userdata: str("Accepted; nothing in a fake cloud reads it."),
  networks: listOf(str(), { description: "Networks of the node.", default: "the pool's" }),
});

const pool = cloudPool(
  {
    networks: listOf(str(), "Names; `fake-ipv6-network-name` gives IPv6."),
    "security-groups": listOf(str(), "Accepted; nothing in a fake cloud reads it."),
    "auto-floating-ip": bool({
      description: "Accepted; a fake cloud has no floating addresses.",
      default: true,
    }),
  },
  label,
);

/** The keys of openstack (docs/contract/config.md, "OpenStack keys"), and `fake`, which is ours. */
export const schema = closed(
  {
    cloud: str("Name of the cloud; providers that name one cloud share it."),
    "region-name": str("Region shown on nodes."),
    ...cloudKeys,
    rate: numberish({
      description: "Accepted; a fake cloud needs no protection.",
      default: 1,
      unit: "s between calls",
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
    diskimages: listOf(diskimage, "Built images that this provider gets."),
    "cloud-images": listOf(listedCloudImage(configDrive), "Images that the cloud has."),
    pools: listOf(pool, "What the provider offers, in pools."),
    fake: knobsSchema,
  },
  ["cloud"],
);
