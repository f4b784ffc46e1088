import { isDeepStrictEqual } from "node:util";
import {
  type ConfigOf,
  cloudConfig,
  type Entry,
  Is,
  Key,
  type LabelConfig,
  type Reader,
  type Values,
} from "@nodeyard/driver";
import { readKeys, readLend, type SliverSettings, sliverKeys } from "@nodeyard/driver-sliver/parts";

/** Values of a node's record before its backing node is known (docs/contract/drivers.md, "Metastatic records"). */
const UNKNOWN = "unknown";

/** Why two keys differ from Nodepool, in the reference page. */
const AGE = "counts from when the backing node was ready; in Nodepool from when it was requested.";

const AS_0 = { like: Is.FROM_0, instead: "counts as 0" };

/** Keys of how backing nodes are cut into slots. Labels with the same backing label must agree on all of them. */
const slotTable = {
  "backing-label": Key.text("Label of the backing node, by which it is asked for.", {
    needed: true,
    like: Is.NOT_EMPTY,
  }).differs(
    "several launchers may serve one provider, since slots are claimed in ZooKeeper; in Nodepool one process knows them.",
  ),
  "max-parallel-jobs": Key.integer("Slots of one backing node.", {
    default: 1,
    like: Is.whole(1),
    instead: "keeps the label from being served",
  })
    .as("slots")
    .map((jobs) => Math.max(0, Math.floor(jobs))),
  "grace-time": Key.seconds("An empty backing node is kept this long.", { default: 60, ...AS_0 })
    .as("graceMs")
    .map(notBelow0),
  "min-retention-time": Key.seconds("A backing node is kept at least this long after it became ready.", {
    default: 0,
    ...AS_0,
  })
    .as("minRetentionMs")
    .map(notBelow0)
    .differs(AGE),
  "max-age": Key.seconds("From this age on a backing node takes no more slots, and goes once it is empty.", {
    default: 0,
    shown: "no limit",
    ...AS_0,
  })
    .as("maxAgeMs")
    .map((age) => (age > 0 ? age : Number.POSITIVE_INFINITY))
    .differs(AGE),
};

/** Keys of a label whose slots are slivers. */
const isolationTable = {
  isolation: Key.choice(
    "How slots are separated. `none`: each slot is the backing node itself. `sliver`: each slot is a sliver on it; the backing node must be a sliver host.",
    ["none", "sliver"],
  ),
  lend: Key.choice(
    "Lending of unused caps, with `isolation: sliver`. `none`: a slot lends nothing. `idle`: a slot lends to busy slots of its backing node while its own node is not assigned.",
    ["none", "idle"],
  ).when(isSeparated),
  sliver: Key.inner(
    Key.section({
      ...sliverKeys,
      "authorized-keys": Key.texts(
        "Public keys that may log in, without options; needed with `isolation: sliver`.",
      ).map(readKeys),
    }),
    "Resources and settings of each slot, with `isolation: sliver`.",
  ).when(isSeparated),
};

const label = {
  slot: Key.group(slotTable),
  "host-key-checking": Key.flag(
    "True: each slot is scanned before it is handed out; a failure retires its backing node.",
    Key.inherited("the pool's; true with `isolation: sliver`"),
  ),
  ...isolationTable,
};

const pool = { "host-key-checking": Key.flag("Default of the pool's labels.", { default: false }) };

const provider = Key.launchKeys({
  boot: 120,
  booted: "For a slot to answer, where it is scanned.",
  launched: "From the start of a launch to a slot, the backing node's own launch included.",
});

/** How the slots of one label are made from backing nodes. Times are milliseconds. */
export interface MetastaticLabelOwn extends Values<typeof slotTable> {
  /** The sliver of each slot; absent: slots are not separated. */
  readonly sliver?: SliverSettings;
}
type Label = Entry<{ readonly name: string; readonly slot: Values<typeof slotTable> }>;

/** The keys of docs/contract/config.md, "Metastatic keys": schema, defaults and compiler. */
export const metastaticConfig = cloudConfig(
  "metastatic",
  {
    provider,
    pool,
    label,
    reuses: false,
    needed: "validator",
    offers: "What the pool cuts out of backing nodes.",
  },
  {
    provider({ pools, own }) {
      demandAgreement(pools.flatMap(({ labels }) => labels));
      return { own };
    },
    label(label, pool): Partial<MetastaticLabel> & { own: MetastaticLabelOwn } {
      const sliver = isolationOf(label);
      return {
        // A sliver has a host key of its own, which its client can learn only from the node record.
        hostKeyChecking: label.hostKeyChecking ?? (sliver !== undefined || pool.hostKeyChecking),
        connection: { username: UNKNOWN, pythonPath: UNKNOWN, shellType: UNKNOWN, type: UNKNOWN, port: 22 },
        image: { kind: "cloud-image", name: "unused" },
        own: { ...label.slot, ...(sliver && { sliver }) },
      };
    },
  },
);

export type MetastaticProvider = ConfigOf<typeof metastaticConfig>;
export type MetastaticLabel = LabelConfig<MetastaticLabelOwn>;

/** A negative time counts as none. */
function notBelow0(ms: number): number {
  return Math.max(0, ms);
}

/** Labels with the same backing label must agree on its keys (docs/contract/config.md, "Metastatic keys"). */
function demandAgreement(labels: readonly Label[]): void {
  const agreed = new Map<string, Label>();
  for (const label of labels) {
    const { at, name, slot } = label;
    if (name === slot.backingLabel)
      at.error("backing-label", `names ${name} itself; a slot is cut out of a node of another label`);
    if (slot.maxAgeMs < slot.minRetentionMs)
      at.error("max-age", "is below min-retention-time; raise it, or lower min-retention-time");
    const first = agreed.get(slot.backingLabel);
    // The first label of the file is taken as right, and the later ones are reported.
    if (first === undefined) agreed.set(slot.backingLabel, label);
    else if (!isDeepStrictEqual(first.slot, slot))
      at.error(
        "backing-label",
        `shares ${slot.backingLabel} with label ${first.name}: multiple label definitions for the same backing label must be identical; make max-parallel-jobs, grace-time, min-retention-time and max-age the same, or use another backing label`,
      );
  }
}

/** Undefined when slots are not separated. */
function isolationOf({ at, lend, sliver }: Entry<Values<typeof isolationTable>>): SliverSettings | undefined {
  if (sliver === undefined || lend === undefined) {
    for (const key of ["sliver", "lend"])
      if (at.has(key)) at.useless(key, "is without effect; add isolation: sliver");
    return undefined;
  }
  if (sliver.authorizedKeys.length === 0)
    at.inner("sliver").error(
      "authorized-keys",
      "has no public key, so logins to slots are impossible; add one",
    );
  return { ...sliver, lends: readLend(lend, sliver.rspec, at) };
}

/** For keys that have a meaning only with `isolation: sliver`. Elsewhere they are not read, and `isolationOf` warns of them. */
function isSeparated({ raw }: Reader): boolean {
  return raw.isolation === "sliver";
}
