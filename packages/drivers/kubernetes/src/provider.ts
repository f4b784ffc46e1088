import { cloudProvider, type DriverContext, openProvider, type Provider, type Share } from "@nodeyard/driver";
import type { Cluster } from "./cluster.ts";
import type { KubeProviderConfig } from "./config.ts";
import type { Kind } from "./config-table.ts";
import { mapError } from "./errors.ts";
import { jobAccess } from "./nodes/access.ts";
import { isolatedNodes } from "./nodes/isolated.ts";
import { sharedNodes } from "./nodes/shared.ts";

/** Opens a provider of a cluster. Rejects when the credential is invalid or may not list the nodes' objects. */
export function kubeProvider(
  kind: Kind,
  config: KubeProviderConfig,
  { clock, log, installation, purpose, remark = () => {} }: DriverContext,
  { account: cluster, release }: Share<Cluster>,
): Promise<Provider> {
  const access = jobAccess(cluster.connection, clock);
  const site = { kind, config, cluster, access, clock, log, installation, purpose, remark, release };
  return kind === "openshiftpods"
    ? openProvider(config.name, mapError, (closed) => sharedNodes(site, closed))
    : cloudProvider(config, mapError, (closed) => isolatedNodes(site, closed));
}
