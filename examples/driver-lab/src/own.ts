import type { PoolConfig, ProviderConfig } from "@nodeyard/driver";

/** What only this driver understands of a provider. */
export interface LabProviderOwn {
  /** Holds one folder per board. Providers that name the same one share its boards and its limit. */
  readonly folder: string;
  /** Boards at once in the folder, whoever made them; Infinity: no limit. */
  readonly maxBoards: number;
}

export interface LabLabelOwn {
  /** What a board says to whoever connects. */
  readonly greeting: string;
}

export type LabPoolConfig = PoolConfig<undefined, LabLabelOwn>;
export type LabProviderConfig = ProviderConfig<LabProviderOwn, undefined, LabLabelOwn>;
