export { type Call, type CallSeen, Connection } from "./connection.ts";
export { KubeConfigError, KubeError, NoAnswer } from "./errors.ts";
export { type Access, type KubeFiles, type PluginCommand, resolveAccess } from "./kubeconfig.ts";
export {
  type Condition,
  type ContainerStatus,
  type KubeObject,
  type List,
  listAll,
  type Pod,
  type PodContainer,
} from "./objects.ts";
export type { HttpRequest, Route, Transport } from "./transport.ts";
export { ObjectWatch } from "./watch.ts";
