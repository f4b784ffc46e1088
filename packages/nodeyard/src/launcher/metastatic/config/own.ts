import type { LabelConfig, PoolConfig, ProviderConfig } from "@nodeyard/driver";
import type { SlotIsolation } from "../../../slivers/index.ts";

/** How one label is cut out of backing nodes. Times are milliseconds. */
export interface MetastaticLabelOwn {
  /** Label of the backing node, asked for by an ordinary request. */
  readonly backingLabel: string;
  /** `max-parallel-jobs`: slots of one backing node; 0: the label is never served. */
  readonly slots: number;
  /** An empty backing node is kept this long. */
  readonly graceMs: number;
  /** A backing node is kept at least this long after it became ready. */
  readonly minRetentionMs: number;
  /** From this age on a backing node takes no more slots; Infinity: never. */
  readonly maxAgeMs: number;
  /** Each slot is a sliver with this; absent: nothing separates slots. */
  readonly sliver?: SlotIsolation;
}

/** Nothing of its own. */
export type Nothing = Readonly<Record<string, never>>;

export type MetastaticLabel = LabelConfig<MetastaticLabelOwn>;
export type MetastaticPool = PoolConfig<Nothing, MetastaticLabelOwn>;
export type MetastaticProvider = ProviderConfig<Nothing, Nothing, MetastaticLabelOwn>;
