export type { KubeHost } from "./cluster.ts";
export {
  type KubeLabelOwn,
  type KubePoolOwn,
  type KubeProviderConfig,
  type KubeProviderOwn,
  kubernetesConfig,
  openshiftConfig,
  openshiftpodsConfig,
} from "./config.ts";
export { createKubernetesDrivers } from "./driver.ts";
export { kubernetesDriver, thisHost } from "./edge/host.ts";
