import { defined } from "@nodeyard/runtime";
import { poolKeys } from "./common-keys.ts";
import { type ImageTables, imageKeys, labelImageKeys } from "./images.ts";
import { ofEachOffering, offeringKeys } from "./offerings.ts";
import { reuseKeys } from "./reuse.ts";
import { type Rule, section, type Table, type Values } from "./section.ts";
import { entries, text } from "./words.ts";

/** Values that the launcher reads; all other values of a mapping are the driver's `own`. */
const COMMON = {
  // biome-ignore format: a list of words
  provider: ["name", "driver", "maxConcurrency", "priority", "launchTimeoutMs", "bootTimeoutMs", "launchAttempts", "prices", "pools",
    "diskimages", "cloudImages", "hostKeyChecking", "useInternalIp"],
  // biome-ignore format: a list of words
  pool: ["name", "limits", "priority", "nodeAttributes", "labels", "availabilityZones", "useInternalIp", "hostKeyChecking",
    "ignoreProviderQuota"],
  label: [
    "name",
    "diskimage",
    "cloudImage",
    "hostKeyChecking",
    "consoleLog",
    "connection",
    "offerings",
    "reuse",
  ],
} as const;

/** The mappings of a provider that inherit from each other, from the outside inwards. */
export type Level = keyof typeof COMMON;

/** The driver's part of the values of a table. */
export type Own<L extends Level, T extends Table> = Omit<Values<T>, (typeof COMMON)[L][number]>;

/** The driver's part of values that were read. */
export function ownOf(level: Level, values: object): object {
  const common: readonly string[] = ["at", ...COMMON[level]];
  return Object.fromEntries(Object.entries(values).filter(([name]) => !common.includes(name)));
}

/** The keys of a driver, one table for each mapping of the file. A key that all drivers have is replaced by one of its name. */
export interface Tables<P, Q, L, D, C> {
  readonly provider: P;
  readonly pool: Q;
  /** Absent: `pool` has other keys that make labels. */
  readonly label?: L;
  readonly labelRules?: readonly Rule[];
  /** Keys of a label that say what is bought, so that they may differ between the `offerings` of a label. Absent: it has none. */
  readonly perOffering?: readonly string[];
  /** False: its nodes are no machines of their own, so that none of them can be used again. */
  readonly reuses?: false;
  /** Description of `labels`. */
  readonly offers?: string;
  /** Nodepool's validator wants pools, their names and their labels. Absent: the loader wants the names alone. */
  readonly needed?: "validator";
  /** Absent: machines are not made from images. */
  readonly images?: ImageTables<D, C>;
}

/** The table of a provider. */
export function tableOf(tables: Tables<Table, Table, Table, Table, Table>): Table {
  const { provider, pool, label, labelRules = [], offers = "What the pool offers.", images } = tables;
  const { perOffering = [], reuses } = tables;
  const needed = defined({ needed: tables.needed });
  const labelTable = {
    name: text("A top-level label.", { needed: true }),
    ...(images && labelImageKeys(images)),
    ...label,
    ...(reuses !== false && reuseKeys),
  };
  const labels =
    perOffering.length === 0
      ? section(labelTable, ...labelRules)
      : section(
          { ...labelTable, ...offeringKeys(labelTable, perOffering) },
          ...labelRules.map(ofEachOffering),
        );
  const poolTable = {
    ...poolKeys,
    ...(tables.needed && { name: text("Name of the pool, unique in its provider.", { needed: true }) }),
    ...pool,
    ...(label && { labels: entries(labels, offers, needed) }),
  };
  return {
    ...provider,
    ...(images && imageKeys(images)),
    pools: entries(section(poolTable), "What the provider offers, in pools.", needed),
  };
}
