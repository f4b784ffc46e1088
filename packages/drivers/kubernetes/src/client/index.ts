export { type Call, Connection } from "./connection.ts";
export { type Access, type KubeFiles, type PluginCommand, type Route, resolveAccess } from "./kubeconfig.ts";
export {
  type Condition,
  type ContainerStatus,
  type KubeObject,
  type List,
  listAll,
  type Pod,
  type PodContainer,
} from "./objects.ts";
export { ObjectWatch } from "./watch.ts";
