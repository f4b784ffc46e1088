import type { PoolConfig, ProviderConfig } from "@nodeyard/driver";
import type { FakeKnobs } from "./knobs.ts";

/** What only this driver understands of a provider. */
export interface FakeProviderOwn {
  /** Providers of one process with the same name see one cloud; default: the provider's `cloud` or its name. */
  readonly cloud: string;
  readonly knobs: FakeKnobs;
  /** File that keeps the cloud beyond the process and shares it between processes, or null: memory only. */
  readonly journal: string | null;
  /** Where uploaded images are kept; absent: this cloud takes none. */
  readonly images?: { readonly folder: string; readonly formats: readonly string[] };
}

export interface FakePoolOwn {
  /** Names of networks; `fake-ipv6-network-name` and `no-auto-ip-network-name` shape the addresses. */
  readonly networks: readonly string[];
}

export interface FakeLabelOwn {
  /** What one node takes beside `instances: 1`. */
  readonly cores: number;
  /** MiB. */
  readonly ram: number;
  /** Properties of the image; `SHOULD_FAIL: "true"` makes every launch fail. */
  readonly imageProperties: Readonly<Record<string, string>>;
}

export type FakePoolConfig = PoolConfig<FakePoolOwn, FakeLabelOwn>;
export type FakeProviderConfig = ProviderConfig<FakeProviderOwn, FakePoolOwn, FakeLabelOwn>;
