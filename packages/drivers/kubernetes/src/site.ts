import type { DriverContext } from "@nodeyard/driver";
import type { Cluster } from "./cluster.ts";
import type { KubeProviderConfig } from "./config.ts";
import type { Kind } from "./config-table.ts";
import type { JobAccess } from "./nodes/access.ts";

/** Dependencies of a provider's nodes. Objects with another `installation` are never touched. */
export interface Site extends DriverContext {
  readonly kind: Kind;
  readonly config: KubeProviderConfig;
  readonly cluster: Cluster;
  readonly access: JobAccess;
  readonly remark: NonNullable<DriverContext["remark"]>;
  /** Gives up the cluster. */
  release(): Promise<void>;
}
