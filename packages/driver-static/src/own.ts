import type { Connection, PoolConfig, ProviderConfig } from "@nodeyard/driver";

/** One host of a pool; (name, username, connection.port) is unique in the provider. */
export interface StaticHost {
  /** Host name or address. */
  readonly name: string;
  readonly labels: readonly string[];
  readonly connection: Connection;
  /** `max-parallel-jobs`, at least 1. */
  readonly slots: number;
  /** False: the host is never contacted. */
  readonly hostKeyChecking: boolean;
  /** "<type> <base64>" each; all of them must be among what the host shows. Empty: whatever it shows is taken. */
  readonly hostKeys: readonly string[];
  /** For one probe, milliseconds. */
  readonly timeoutMs: number;
}

export interface StaticPoolOwn {
  readonly hosts: readonly StaticHost[];
}

/** Nothing of its own. */
export type StaticProviderOwn = Readonly<Record<string, never>>;

export type StaticPoolConfig = PoolConfig<StaticPoolOwn, unknown>;
export type StaticProviderConfig = ProviderConfig<StaticProviderOwn, StaticPoolOwn, unknown>;
