import type { z } from "zod";
import type { Resources } from "../resources.ts";
import type { LabelConfig, PoolConfig, ProviderConfig } from "./compiled.ts";
import type { LoadContext } from "./driver-config.ts";
import type { Reader } from "./reader.ts";
import { dict, int, str } from "./vocabulary.ts";

const DEFAULT_PRIORITY = 100;
const SSH_PORT = 22;
const WINRM_PORT = 5986;

/** Keys of every pool (docs/contract/config.md, "Providers and drivers"); `labels` or `nodes` is each driver's own. */
export const commonPoolKeys: Readonly<Record<string, z.ZodType>> = {
  name: str("Name of the pool, unique in its provider."),
  "max-servers": int({
    description: "Nodes at once; 0 or less: the pool declines everything.",
    default: "no limit",
  }),
  "node-attributes": dict("Copied to the `attributes` of every node of the pool."),
  priority: int({ description: "Lower is preferred.", default: "the provider's" }),
};

/** Keys of the images that a provider lists (docs/contract/config.md, "Images of a provider"). */
export const connectionKeys: Readonly<Record<string, z.ZodType>> = {
  "connection-type": str({
    description: "`ssh` and `network_cli` show host keys; with any other type only the port is tried.",
    default: "ssh",
  }),
  "connection-port": int({ description: "Port a client connects to.", default: "22; 5986 for winrm" }),
};

/** `connection-type` and `connection-port` of an image. */
export function readConnection(from: Reader): { readonly type: string; readonly port: number } {
  const type = from.text("connection-type", "ssh");
  return { type, port: from.number("connection-port", type === "winrm" ? WINRM_PORT : SSH_PORT) };
}

type CommonProvider = Pick<ProviderConfig, "name" | "driver" | "maxConcurrency" | "priority">;

/**
 * Keys of every provider (docs/contract/config.md, "Providers and drivers"). A negative `max-concurrency` is no limit, 0 is none
 * at all.
 */
export function readCommonProvider(from: Reader, driver: string): CommonProvider {
  const concurrency = from.number("max-concurrency", -1);
  return {
    name: from.text("name", ""),
    driver,
    maxConcurrency: concurrency < 0 ? Number.POSITIVE_INFINITY : concurrency,
    priority: from.number("priority", DEFAULT_PRIORITY),
  };
}

type CommonPool = Pick<PoolConfig, "name" | "priority" | "nodeAttributes" | "limits">;

/** Keys of every pool. Undefined after an error: a pool cannot be without a name. */
export function readCommonPool(
  from: Reader,
  provider: Pick<ProviderConfig, "priority">,
): CommonPool | undefined {
  const name = from.needed("name");
  if (name === undefined) return undefined;
  const nodeAttributes = from.mapping("node-attributes");
  return {
    name,
    priority: from.number("priority", provider.priority),
    nodeAttributes,
    limits: readLimits(from, { instances: "max-servers" }),
  };
}

/** Limits by resource name; a key that is absent is no limit. */
export function readLimits(from: Reader, keys: Readonly<Record<string, string>>): Resources {
  const limits: Record<string, number> = {};
  for (const [resource, key] of Object.entries(keys))
    limits[resource] = from.number(key, Number.POSITIVE_INFINITY);
  return limits;
}

/** Keeps the last of several pools with one name, as the old loader does, and says so. */
export function uniquePools<P extends { readonly name: string }>(
  from: Reader,
  pools: readonly P[],
): readonly P[] {
  const byName = new Map<string, P>();
  for (const pool of pools) {
    if (byName.has(pool.name)) from.warn("pools", `lists pool ${pool.name} twice; the last one counts`);
    byName.set(pool.name, pool);
  }
  return [...byName.values()];
}

/** Labels by name; the last of several definitions counts. Names must exist among the top-level labels. */
export function labelMap<Own>(
  from: Reader,
  labels: readonly (readonly [Reader, LabelConfig<Own>])[],
  context: LoadContext,
): ReadonlyMap<string, LabelConfig<Own>> {
  const byName = new Map<string, LabelConfig<Own>>();
  for (const [at, label] of labels) {
    if (!context.labels.has(label.name)) {
      at.error("name", `names label ${label.name}, which is not in the top-level labels; add it there`);
    }
    if (byName.has(label.name)) from.warn("labels", `defines label ${label.name} twice; the last one counts`);
    byName.set(label.name, label);
  }
  return byName;
}
