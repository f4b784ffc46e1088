import type { PoolConfig, ProviderConfig } from "@nodeyard/driver";
import type { Resource, SshTarget } from "@nodeyard/sliver-protocol";

/** A machine with a sliver manager, and how its API is reached. */
export interface MachineAt {
  /** The node id that it was enrolled by: documents for it carry that. */
  readonly name: string;
  readonly at: { readonly socket: string } | { readonly ssh: SshTarget };
  /** What clients reach the machine by, each sliver at a port of it; null: slivers at their own addresses. */
  readonly address: string | null;
}

/** What only this driver understands of a provider. */
export interface SliverProviderOwn {
  readonly machines: readonly MachineAt[];
  /** Absolute path of the launcher's signing keys. */
  readonly signingKeys: string;
  /** Of what this provider writes; higher than that of whoever it takes a machine over from. */
  readonly epoch: number;
}

export interface SliverLabelOwn {
  /** What a sliver of the label is given; the manager's defaults for what is absent. */
  readonly rspec: Readonly<Partial<Record<Resource, number>>>;
  /** Name or digest, as the machines know images; null: their default. */
  readonly image: string | null;
  /** Run in the sliver when it starts, as its user. */
  readonly initscript: string;
  /** `type base64`, each. */
  readonly authorizedKeys: readonly string[];
  /** Its slivers lend their caps to each other while nobody uses them. */
  readonly lends: boolean;
}

export type SliverPoolConfig = PoolConfig<undefined, SliverLabelOwn>;
export type SliverProviderConfig = ProviderConfig<SliverProviderOwn, undefined, SliverLabelOwn>;
