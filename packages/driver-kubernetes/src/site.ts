import type { Clock, Log, Random } from "@nodeyard/driver";
import type { Cluster } from "./clusters.ts";
import type { KubeProviderConfig } from "./config.ts";
import type { JobAccess } from "./nodes/access.ts";

/** What the nodes of one provider are made with. */
export interface Site {
  readonly kind: "kubernetes" | "openshift" | "openshiftpods";
  readonly config: KubeProviderConfig;
  readonly cluster: Cluster;
  readonly access: JobAccess;
  readonly installation: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** How long the scheduler of the cluster may find no room before that is believed, milliseconds. */
  readonly roomMs: number;
}
