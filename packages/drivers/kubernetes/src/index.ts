export type { KubeHost } from "./clusters.ts";
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
export { kubernetesDriver } from "./edge/default.ts";
export { thisHost } from "./edge/host.ts";
