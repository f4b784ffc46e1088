import { launchKeys, poolKeys } from "./common-keys.ts";
import type { PoolConfig } from "./compiled.ts";
import type { LoadContext } from "./driver-config.ts";
import { CLOUD_NAME, FROM_0 } from "./grammar.ts";
import { type ImageLists, imageKeys, labelImage, uploadKeys } from "./images.ts";
import { compileLabels, compilePools } from "./pools.ts";
import { group, type Rule, section, type Table, type Values } from "./section.ts";
import { type Entry, entries, flag, inherited, integer, LIMIT, text, texts } from "./words.ts";

/** Keys of clouds with flavors, quotas and zones (docs/contract/config.md, "OpenStack keys") that mean the same in each of them. */

type Raw = Readonly<Record<string, unknown>>;

const has = (value: Raw, key: string) => value[key] !== undefined;
const notBoth = (one: string, other: string): Rule => [
  (value) => !has(value, one) || !has(value, other),
  `has both ${one} and ${other}; keep one`,
];

/** How a cloud image is named. Without both keys its `name` is looked up. */
const cloudImageKeys = {
  "image-id": text("The cloud's id; not together with `image-name`.", { like: CLOUD_NAME }),
  "image-name": text("Name or id to look up; not together with `image-id`.", { like: CLOUD_NAME }),
};

/** Keys of a label; `own` are those of the cloud's driver. */
const labelTable = <Own extends Table>(own: Own) => ({
  name: text("A top-level label.", { needed: true }),
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
  own: group(own),
  "host-key-checking": flag("False: ready as soon as the cloud says so.", inherited("the pool's")),
});

/** Limits of a pool or a tenant, besides the number of nodes. */
export const cloudLimits = {
  "max-cores": integer("Cores at once.", LIMIT).as("cores"),
  "max-ram": integer("Memory at once.", { ...LIMIT, unit: "MiB" }).as("ram"),
  "max-volumes": integer("Volumes at once.", LIMIT).as("volumes"),
  "max-volume-gb": integer("Size of all volumes.", { ...LIMIT, unit: "GB" }).as("volume-gb"),
};

/** Keys of a pool; `pool` and `label` are the keys that the cloud's driver adds. */
const poolTable = <Pool extends Table, Label extends Table>(pool: Pool, label: Label) => ({
  ...poolKeys(cloudLimits),
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
  own: group(pool),
  "host-key-checking": flag("False: ready as soon as the cloud says so.", { default: true }),
  labels: entries(
    section(
      labelTable(label),
      notBoth("diskimage", "cloud-image"),
      [
        (value) => has(value, "diskimage") || has(value, "cloud-image"),
        "has no image; add diskimage or cloud-image",
      ],
      [
        (value) => has(value, "min-ram") || has(value, "flavor-name"),
        "has no size; add min-ram or flavor-name",
      ],
    ),
    "What the pool offers.",
  ),
});

/** Keys of a provider. `own` has the additional keys of the driver: for pools, labels, and the listed images. */
export const cloudKeys = <P extends Table, L extends Table, D extends Table, C extends Table>(own: {
  readonly pool: P;
  readonly label: L;
  readonly diskimage: D;
  readonly cloudImage: C;
}) => ({
  ...launchKeys({}),
  ...uploadKeys,
  "nodepool-id": text("Without effect.", { deprecated: true }).unused(),
  ...imageKeys(
    { diskimage: own.diskimage, cloudImage: { ...cloudImageKeys, ...own.cloudImage } },
    {
      description: "Images that the cloud has.",
      named: "loader",
      rules: [notBoth("image-id", "image-name")],
    },
  ),
  pools: entries(section(poolTable(own.pool, own.label)), "What the provider offers, in pools."),
});

/** A label as the table reads it. `own` has the driver's keys. */
type Label<Own> = Entry<Omit<Values<ReturnType<typeof labelTable<Record<never, never>>>>, "own">> & {
  readonly own: Own;
};
type Pool<Own, LabelKeys> = Entry<
  Omit<Values<ReturnType<typeof poolTable<Record<never, never>, Record<never, never>>>>, "own" | "labels">
> & { readonly own: Own; readonly labels: readonly Label<LabelKeys>[] };

/** Compiles the pools of such a cloud. `own` makes the driver's part of a label, from the label and its image. */
export function compileCloudPools<PoolOwn, LabelKeys, Image, LabelOwn>(
  provider: Entry<{ readonly priority: number; readonly pools: readonly Pool<PoolOwn, LabelKeys>[] }>,
  images: { readonly lists: ImageLists<Image>; readonly none: Image },
  context: LoadContext,
  own: (label: Label<LabelKeys>, image: Image, pool: PoolOwn) => LabelOwn,
): readonly PoolConfig<PoolOwn, LabelOwn>[] {
  return compilePools(provider, (pool: Pool<PoolOwn, LabelKeys>) => ({
    labels: compileLabels(pool, context, (label) => {
      const { connection, image, own: of } = labelImage(label, images.lists, context, images.none);
      return {
        hostKeyChecking: label.hostKeyChecking ?? pool.hostKeyChecking,
        connection,
        consoleLog: label.consoleLog,
        image,
        own: own(label, of, pool.own),
      };
    }),
    availabilityZones: pool.availabilityZones,
    ignoreProviderQuota: pool.ignoreProviderQuota,
    own: pool.own,
  }));
}
