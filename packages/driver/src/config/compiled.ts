import type { Resources } from "../resources.ts";

/**
 * Compiled configuration: what the launcher and the drivers work with. Every default is applied (in the driver's
 * table of keys, nowhere else); nothing in here is optional by accident. Times are milliseconds.
 */

/** How a client reaches a node; copied onto the node record. */
export interface Connection {
  readonly username: string | null;
  readonly pythonPath: string | null;
  readonly shellType: string | null;
  /** `ssh` and `network_cli` have host keys; any other type only has a port. */
  readonly type: string;
  readonly port: number;
}

/** A label of a pool as drivers get it: checked, with defaults filled in, times in milliseconds. `own` is the driver's part. */
export interface LabelConfig<Own = unknown> {
  readonly name: string;
  /** False: the node is ready as soon as the driver says so; nothing is scanned. */
  readonly hostKeyChecking: boolean;
  readonly connection: Connection;
  /** Keep the console of a machine that does not come up; absent: no. */
  readonly consoleLog?: boolean;
  /**
   * The image that a launch boots: a diskimage that the builder uploads, one the cloud has, or none. `listed` false: the
   * provider lists no such diskimage, so that it never gets an upload.
   */
  readonly image: {
    readonly kind: "diskimage" | "cloud-image";
    readonly name: string;
    readonly listed?: boolean;
  } | null;
  /** What only the driver understands. */
  readonly own: Own;
}

/** A pool as drivers get it, with its labels. `own` is the driver's part. */
export interface PoolConfig<PoolOwn = unknown, LabelOwn = unknown> {
  readonly name: string;
  /** Limits on what this pool may use: `instances` is `max-servers`. Infinity where the file sets none. */
  readonly limits: Resources;
  /** Lower is preferred; the provider's value unless the pool has its own. */
  readonly priority: number;
  readonly nodeAttributes: Readonly<Record<string, unknown>> | null;
  /** By label name, in the order of the file. */
  readonly labels: ReadonlyMap<string, LabelConfig<LabelOwn>>;
  /** Zones to choose from; empty: the driver's own list. */
  readonly availabilityZones: readonly string[];
  readonly useInternalIp: boolean;
  /** Only the pool's limits count, not what the cloud says of its quota (`ignore-provider-quota`); absent: both do. */
  readonly ignoreProviderQuota?: boolean;
  readonly own: PoolOwn;
}

/** Prices of an hour by what machines are bought as (`offers.types`), or by label where a driver has no types. */
export interface PriceList {
  readonly perHour: Readonly<Record<string, number>>;
  /** Code of ISO 4217. */
  readonly currency: string;
}

/** A provider as drivers get it, with its pools; times in milliseconds. `own` is the driver's part. */
export interface ProviderConfig<ProviderOwn = unknown, PoolOwn = unknown, LabelOwn = unknown> {
  readonly name: string;
  readonly driver: string;
  /** Launches at once over all pools; Infinity: no limit; 0: the pools look at no request. */
  readonly maxConcurrency: number;
  readonly priority: number;
  readonly pools: readonly PoolConfig<PoolOwn, LabelOwn>[];
  /** From the start of a create to a machine, milliseconds. */
  readonly launchTimeoutMs: number;
  /** For the machine to answer once it is up, milliseconds. */
  readonly bootTimeoutMs: number;
  /** Attempts per node in all, at least 1. */
  readonly launchAttempts: number;
  /** What the file says that machines cost; absent: nothing. */
  readonly prices?: PriceList;
  readonly own: ProviderOwn;
}
