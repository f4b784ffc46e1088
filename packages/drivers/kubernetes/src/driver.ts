import { cloudProvider, type Driver, openProvider, SharedAccounts } from "@nodeyard/driver";
import { Cluster, type KubeHost } from "./cluster.ts";
import { type KubeProviderConfig, kubernetesConfig, openshiftConfig, openshiftpodsConfig } from "./config.ts";
import type { Kind } from "./config-table.ts";
import { mapError } from "./errors.ts";
import { jobAccess } from "./nodes/access.ts";
import { isolatedNodes } from "./nodes/isolated.ts";
import { sharedNodes } from "./nodes/shared.ts";

type KubeDriver = Driver<KubeProviderConfig>;

/** The drivers `kubernetes`, `openshift` and `openshiftpods`, in this order, on a given host. */
export function createKubernetesDrivers(host: KubeHost): readonly [KubeDriver, KubeDriver, KubeDriver] {
  // One for all three drivers, so that providers with one context share its connection and watches whatever their driver is.
  const clusters = new SharedAccounts<Cluster>();
  const driver = (kind: Kind, config: KubeDriver["config"]): KubeDriver => ({
    name: kind,
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    config,
    /** Rejects when the credential is invalid or may not list the nodes' objects. */
    open(compiled, context) {
      const { clock, log, installation, purpose, remark = () => {} } = context;
      const { context: of } = compiled.own;
      // KUBECONFIG is part of the key, because the same context may mean another cluster in another file. The installation is,
      // because watches select its objects.
      const key = JSON.stringify([of, host.files.env.KUBECONFIG ?? null, installation]);
      const { account: cluster, release } = clusters.share(
        clock,
        key,
        0,
        () => new Cluster(of, host, context),
      );
      const access = jobAccess(cluster.connection, clock);
      const common = { clock, log, installation, purpose, remark };
      const site = { kind, config: compiled, cluster, access, ...common, release };
      return kind === "openshiftpods"
        ? openProvider(compiled.name, mapError, (closed) => sharedNodes(site, closed))
        : cloudProvider(compiled, mapError, (closed) => isolatedNodes(site, closed));
    },
  });
  return [
    driver("kubernetes", kubernetesConfig),
    driver("openshift", openshiftConfig),
    driver("openshiftpods", openshiftpodsConfig),
  ];
}
