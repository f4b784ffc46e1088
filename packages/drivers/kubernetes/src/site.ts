import type { Clock, DriverContext, Log, Random } from "@nodeyard/driver";
import type { Cluster } from "./clusters.ts";
import type { KubeProviderConfig } from "./config.ts";
import type { JobAccess } from "./nodes/access.ts";
import type { Kind } from "./pod-spec.ts";

/** Dependencies of a provider's nodes. */
export interface Site {
  readonly kind: Kind;
  readonly config: KubeProviderConfig;
  readonly cluster: Cluster;
  readonly access: JobAccess;
  /** UUID of the installation; objects with another one are never touched. */
  readonly installation: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Takes what `explain` shows of a node. */
  readonly remark: NonNullable<DriverContext["remark"]>;
  readonly purpose: DriverContext["purpose"];
}
