import type { Driver } from "@nodeyard/driver";
import { defined, messageOf } from "@nodeyard/runtime";
import { Clusters, type KubeHost } from "./clusters.ts";
import { type KubeProviderConfig, kubernetesConfig, openshiftConfig, openshiftpodsConfig } from "./config.ts";
import { kubeProvider } from "./provider.ts";
import type { Site } from "./site.ts";

type KubeDriver = Driver<KubeProviderConfig>;

/** The drivers `kubernetes`, `openshift` and `openshiftpods`, in this order, on a given host. */
export function createKubernetesDrivers(host: KubeHost): readonly [KubeDriver, KubeDriver, KubeDriver] {
  // One for all three drivers, so that providers with one context share its connection and watches whatever their driver is.
  const clusters = new Clusters(host);
  const driver = (name: Site["kind"], config: KubeDriver["config"]): KubeDriver => ({
    name,
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    config,
    async open(compiled, context) {
      const { clock, random, installation, observe, log } = context;
      const lease = clusters.share(compiled.own.context, {
        clock,
        random,
        installation,
        ...defined({ observe }),
        onFailure: (path, error) =>
          log.info({ path, error: messageOf(error) }, `the watch of ${path} failed; it begins again`),
      });
      return kubeProvider(name, compiled, context, lease);
    },
  });
  return [
    driver("kubernetes", kubernetesConfig),
    driver("openshift", openshiftConfig),
    driver("openshiftpods", openshiftpodsConfig),
  ];
}
