import type { CreateOrder, Machine } from "../contract.ts";
import type { Instance } from "./types.ts";

/** What the launcher learns of an instance. */
export function describe(instance: Instance, { hostname }: CreateOrder): Machine {
  const { metadata: _, ready: _ready, failed: _failed, deleted: _deleted, quota, ...machine } = instance;
  return { ...machine, hostname, resources: quota };
}
