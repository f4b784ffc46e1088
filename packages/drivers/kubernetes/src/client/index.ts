export { type Call, Connection } from "./connection.ts";
export { type Access, type KubeFiles, type PluginCommand, type Route, resolveAccess } from "./kubeconfig.ts";
export { type KubeObject, listAll, type Pod, type PodContainer } from "./objects.ts";
export { ObjectWatch } from "./watch.ts";
