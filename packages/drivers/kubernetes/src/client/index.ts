export { type Call, Connection, type ConnectionOptions } from "./connection.ts";
export { type Access, type KubeFiles, type PluginCommand, resolveAccess } from "./kubeconfig.ts";
export { type KubeObject, listAll } from "./objects.ts";
export { ObjectWatch } from "./watch.ts";
