import type { Resources } from "../resources.ts";

/**
 * The compiled configuration, which launcher and drivers use. All defaults are applied (the driver's table of keys is
 * the only place that has them). Times are milliseconds.
 */

/** How clients connect to a node. It is copied to the node record. */
export interface Connection {
  readonly username: string | null;
  readonly pythonPath: string | null;
  readonly shellType: string | null;
  /** `ssh` and `network_cli` have host keys; for any other type only the port is checked. */
  readonly type: string;
  readonly port: number;
}

/** One way to buy machines of a label. */
export interface LabelOffering<Own = unknown> {
  /** Higher is preferred. */
  readonly weight: number;
  /** Nothing is bought while an hour costs more; null: no limit. */
  readonly maxPrice: number | null;
  /** Null: any zone of the pool. */
  readonly zone: string | null;
  /** The label as this offering has it, which is what the driver launches. It has no offerings. */
  readonly label: LabelConfig<Own>;
}

/** Whether, and how, a node that was given back is used again. */
export interface LabelReuse {
  /** A program of the launcher's machine and its arguments. */
  readonly check: readonly string[];
  /** How long it may take, milliseconds. */
  readonly checkMs: number;
  /** How often a node is used again. */
  readonly times: number;
  /** For how long from when it was ready for the first time, milliseconds. */
  readonly forMs: number;
  /** How long it stays while nobody takes it, milliseconds. */
  readonly idleMs: number;
  /** False: only the tenant and client that had a node get it again. */
  readonly forAll: boolean;
}

/** A label of a pool, checked and with defaults; times in milliseconds. `own` is the driver's part. */
export interface LabelConfig<Own = unknown> {
  readonly name: string;
  /** What its machines may be bought as, where the file lists several; all else of the label is as in the first of them. */
  readonly offerings?: readonly LabelOffering<Own>[];
  /** False: the node is ready as soon as the driver says so, without a scan of host keys. */
  readonly hostKeyChecking: boolean;
  readonly connection: Connection;
  /** Keep the console output of a machine that does not come up. Default false. */
  readonly consoleLog?: boolean;
  /** Absent: a node that was given back is deleted. */
  readonly reuse?: LabelReuse;
  /**
   * The image to boot: a diskimage that the builder uploads, an image of the cloud, or none. `listed` is false when the provider
   * does not list the diskimage, so that it is never uploaded there.
   */
  readonly image: {
    readonly kind: "diskimage" | "cloud-image";
    readonly name: string;
    readonly listed?: boolean;
  } | null;
  /** The part that only the driver uses. */
  readonly own: Own;
}

/** A pool with its labels. `own` is the driver's part. */
export interface PoolConfig<PoolOwn = unknown, LabelOwn = unknown> {
  readonly name: string;
  /** Limits of this pool; `instances` is `max-servers`. Infinity when the file sets none. */
  readonly limits: Resources;
  /** Lower numbers are preferred. Default: the provider's priority. */
  readonly priority: number;
  readonly nodeAttributes: Readonly<Record<string, unknown>> | null;
  /** Labels by name, in the order of the file. */
  readonly labels: ReadonlyMap<string, LabelConfig<LabelOwn>>;
  /** Zones to choose from; empty: all zones that the driver lists. */
  readonly availabilityZones: readonly string[];
  readonly useInternalIp: boolean;
  /** Only the pool's limits count, not the cloud's quota (`ignore-provider-quota`). Default false. */
  readonly ignoreProviderQuota?: boolean;
  readonly own: PoolOwn;
}

/** Prices per hour by type (`offers.types`), or by label when the driver has no types. */
export interface PriceList {
  readonly perHour: Readonly<Record<string, number>>;
  /** Code of ISO 4217. */
  readonly currency: string;
}

/** A provider with its pools; times in milliseconds. `own` is the driver's part. */
export interface ProviderConfig<ProviderOwn = unknown, PoolOwn = unknown, LabelOwn = unknown> {
  readonly name: string;
  readonly driver: string;
  /** Most launches in progress over all pools. Infinity: no limit; 0: the pools accept no request. */
  readonly maxConcurrency: number;
  readonly priority: number;
  readonly pools: readonly PoolConfig<PoolOwn, LabelOwn>[];
  /** Time from the start of a create to a machine, milliseconds. */
  readonly launchTimeoutMs: number;
  /** Time for the machine to become reachable once it is up, milliseconds. */
  readonly bootTimeoutMs: number;
  /** Attempts per node, at least 1. */
  readonly launchAttempts: number;
  /** Prices from the file; absent when the file has none. */
  readonly prices?: PriceList;
  readonly own: ProviderOwn;
}
