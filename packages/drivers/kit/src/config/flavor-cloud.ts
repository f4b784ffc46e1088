import { atLeastOne, atMostOne } from "./cloud-words.ts";
import { launchKeys, limits, sizeLimits } from "./common-keys.ts";
import { CLOUD_NAME, FROM_0 } from "./grammar.ts";
import { uploadKeys } from "./images.ts";
import type { Tables } from "./levels.ts";
import type { Table } from "./section.ts";
import { flag, inherited, integer, LIMIT, text, texts } from "./words.ts";

/** Keys of clouds with flavors, quotas and zones (docs/contract/config.md, "OpenStack keys") that mean the same in each of them. */

/** How a cloud image is named. Without both keys its `name` is looked up. */
const cloudImageKeys = {
  "image-id": text("The cloud's id; not together with `image-name`.", { like: CLOUD_NAME }),
  "image-name": text("Name or id to look up; not together with `image-id`.", { like: CLOUD_NAME }),
};

const labelKeys = {
  diskimage: text("A top-level diskimage; exactly one of this and `cloud-image`.").differs(
    "a request waits while its image is built or uploaded; Nodepool declines it.",
  ),
  "cloud-image": text("A `cloud-images` entry of this provider; exactly one of this and `diskimage`."),
  "min-ram": integer("Smallest flavor with this much; this or `flavor-name`.", {
    default: 0,
    unit: "MiB",
    like: FROM_0,
    instead: "counts as 0",
  }),
  "flavor-name": text("Flavor, or with `min-ram` a part of its name.", { like: CLOUD_NAME }),
  "console-log": flag("Keep what a machine that does not come up wrote to its console, in log and journal.", {
    default: false,
  }),
  "host-key-checking": flag("False: ready as soon as the cloud says so.", inherited("the pool's")),
};

/** Limits of a pool or a tenant, besides the number of nodes. */
export const cloudLimits = {
  ...sizeLimits,
  "max-volumes": integer("Volumes at once.", LIMIT).as("volumes"),
  "max-volume-gb": integer("Size of all volumes.", { ...LIMIT, unit: "GB" }).as("volume-gb"),
};

const poolTable = {
  limits: limits(cloudLimits),
  "ignore-provider-quota": flag("Only the limits of the pool count, not those of the cloud.", {
    default: false,
  }),
  "availability-zones": texts("One is chosen per request.", {
    default: [],
    shown: "all of the cloud",
    like: CLOUD_NAME,
  }).differs(
    "the zone with the fewest nodes, and another one if it has no room; Nodepool draws one and keeps it.",
  ),
  "host-key-checking": flag("False: ready as soon as the cloud says so.", { default: true }),
};

/** The tables of such a cloud; the given ones have the keys of its driver. */
export const flavorCloud = <
  P extends Table,
  Q extends Table,
  L extends Table,
  D extends Table,
  C extends Table,
>(own: {
  readonly provider: P;
  readonly pool: Q;
  readonly label: L;
  readonly diskimage: D;
  readonly cloudImage: C;
}) =>
  ({
    provider: {
      ...launchKeys({}),
      ...uploadKeys,
      "nodepool-id": text("Without effect.", { deprecated: true }).unused(),
      ...own.provider,
    },
    pool: { ...poolTable, ...own.pool },
    label: { ...labelKeys, ...own.label },
    labelRules: [
      atMostOne("diskimage", "cloud-image"),
      atLeastOne("image", "diskimage", "cloud-image"),
      atLeastOne("size", "min-ram", "flavor-name"),
    ],
    perOffering: ["flavor-name", "min-ram"],
    images: {
      diskimage: own.diskimage,
      cloudImage: { ...cloudImageKeys, ...own.cloudImage },
      named: "loader",
      oneNeeded: "validator",
      rules: [atMostOne("image-id", "image-name")],
    },
  }) satisfies Tables<Table, Table, Table, Table, Table>;
