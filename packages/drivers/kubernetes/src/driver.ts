import { cloudProvider, type Driver, openProvider, SharedAccounts } from "@nodeyard/driver";
import { Cluster, type KubeHost } from "./cluster.ts";
import { type KubeProviderConfig, kubernetesConfig, openshiftConfig, openshiftpodsConfig } from "./config.ts";
import type { Kind } from "./config-table.ts";
import { mapError } from "./errors.ts";
import { jobAccess } from "./nodes/access.ts";
import { isolatedNodes } from "./nodes/isolated.ts";
import { sharedNodes } from "./nodes/shared.ts";

type KubeDriver = Driver<KubeProviderConfig>;

/** The drivers on a given host. A provider does not open when its credential is invalid or may not list the nodes' objects. */
export function createKubernetesDrivers(host: KubeHost): readonly [KubeDriver, KubeDriver, KubeDriver] {
  // One for all three drivers, so that providers with one context share its connection and watches whatever their driver is.
  const clusters = new SharedAccounts<Cluster>();
  const driver = (kind: Kind, table: KubeDriver["config"]): KubeDriver => ({
    name: kind,
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    config: table,
    open(config, { remark = () => {}, ...context }) {
      const { context: of } = config.own;
      const { clock, installation } = context;
      // KUBECONFIG is part of the key, because the same context may mean another cluster in another file. The installation is,
      // because watches select its objects.
      const key = JSON.stringify([of, host.files.env.KUBECONFIG ?? null, installation]);
      const opened = () => new Cluster(of, host, context);
      const { account: cluster, release } = clusters.share(clock, key, 0, opened);
      const site = { ...context, remark, kind, config, cluster, release, access: jobAccess(cluster, clock) };
      return kind === "openshiftpods"
        ? openProvider(config.name, mapError, (closed) => sharedNodes(site, closed))
        : cloudProvider(config, mapError, (closed) => isolatedNodes(site, closed));
    },
  });
  return [
    driver("kubernetes", kubernetesConfig),
    driver("openshift", openshiftConfig),
    driver("openshiftpods", openshiftpodsConfig),
  ];
}
