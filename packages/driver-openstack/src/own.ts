import type { PoolConfig, ProviderConfig } from "@nodeyard/driver";

/** What only this driver understands of a provider. */
export interface OpenstackProviderOwn {
  /** Entry of clouds.yaml; null: the only one, or what the environment says. */
  readonly cloud: string | null;
  /** Also what nodes show as their region. */
  readonly region: string | null;
  /** At least this long between two calls, milliseconds; null: the file says nothing. */
  readonly intervalMs: number | null;
  readonly imageUploadTimeoutMs: number;
  /** Ports of servers that are gone are deleted; without, they are only told of. */
  readonly portCleanup: boolean;
  /** What a provider's `diskimages` entries say for launches, by name. */
  readonly diskimages: ReadonlyMap<string, { readonly configDrive: boolean | null }>;
}

export interface OpenstackPoolOwn {
  /** Names or ids. */
  readonly networks: readonly string[];
  readonly securityGroups: readonly string[];
  readonly autoFloatingIp: boolean;
}

export interface OpenstackLabelOwn {
  /** MiB; 0: the name alone counts. */
  readonly minRam: number;
  readonly flavorName: string | null;
  /** For a cloud image: its id as it is, or a name or id to look up. */
  readonly cloudImage: { readonly id: string } | { readonly name: string } | null;
  readonly keyName: string | null;
  /** GB of the root volume; null: the root disk is the flavor's. */
  readonly volumeSize: number | null;
  readonly instanceProperties: Readonly<Record<string, string>>;
  /** Templates (docs/contract/config.md, "Templates"). */
  readonly dynamicProperties: Readonly<Record<string, unknown>>;
  readonly userData: string | null;
  /** Names or ids; empty: the default of the cloud. */
  readonly networks: readonly string[];
  /** Null: the cloud's default. */
  readonly configDrive: boolean | null;
}

export type OpenstackPoolConfig = PoolConfig<OpenstackPoolOwn, OpenstackLabelOwn>;
export type OpenstackProviderConfig = ProviderConfig<
  OpenstackProviderOwn,
  OpenstackPoolOwn,
  OpenstackLabelOwn
>;
