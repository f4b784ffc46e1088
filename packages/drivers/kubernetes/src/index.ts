export type { KubeHost } from "./cluster.ts";
export {
  type KubeLabelOwn,
  type KubeProviderConfig,
  kubernetesConfig,
  openshiftConfig,
  openshiftpodsConfig,
} from "./config.ts";
export { createKubernetesDrivers } from "./driver.ts";
export { kubernetesDriver, thisHost } from "./edge/host.ts";
