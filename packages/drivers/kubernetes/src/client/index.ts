export * from "./connection.ts";
export { type Access, type KubeFiles, type PluginCommand, resolveAccess } from "./kubeconfig.ts";
export { ObjectWatch } from "./watch.ts";
