import { type Driver, SharedAccounts } from "@nodeyard/driver";
import { Cluster, type KubeHost } from "./cluster.ts";
import { type KubeProviderConfig, kubernetesConfig, openshiftConfig, openshiftpodsConfig } from "./config.ts";
import type { Kind } from "./config-table.ts";
import { kubeProvider } from "./provider.ts";

type KubeDriver = Driver<KubeProviderConfig>;

/** The drivers `kubernetes`, `openshift` and `openshiftpods`, in this order, on a given host. */
export function createKubernetesDrivers(host: KubeHost): readonly [KubeDriver, KubeDriver, KubeDriver] {
  // One for all three drivers, so that providers with one context share its connection and watches whatever their driver is.
  const clusters = new SharedAccounts<Cluster>();
  const driver = (name: Kind, config: KubeDriver["config"]): KubeDriver => ({
    name,
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    config,
    open(compiled, context) {
      const { context: of } = compiled.own;
      // KUBECONFIG is part of the key, because the same context may mean another cluster in another file. The installation is,
      // because watches select its objects.
      const key = JSON.stringify([of, host.files.env.KUBECONFIG ?? null, context.installation]);
      const lease = clusters.share(context.clock, key, 0, () => new Cluster(of, host, context));
      return kubeProvider(name, compiled, context, lease);
    },
  });
  return [
    driver("kubernetes", kubernetesConfig),
    driver("openshift", openshiftConfig),
    driver("openshiftpods", openshiftpodsConfig),
  ];
}
