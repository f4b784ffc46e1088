import type { Reader, Resources } from "@nodeyard/driver";
import type { LabelSettings } from "../types.ts";

/** Top-level labels; of two with one name the last counts. Zero and negative values are "off". */
export function compileLabels(main: Reader): ReadonlyMap<string, LabelSettings> {
  const labels = new Map<string, LabelSettings>();
  for (const from of main.mappings("labels", true)) {
    const name = from.needed("name");
    if (name === undefined) continue;
    if (labels.has(name)) from.warn("name", `repeats label ${name}; the last one counts`);
    labels.set(name, {
      name,
      minReady: Math.max(0, Math.floor(from.number("min-ready", 0))),
      maxReadyAgeMs: ageMs(from, "max-ready-age"),
    });
  }
  return labels;
}

/** A maximal age in the file's seconds; absent, 0 and less are no limit. */
export function ageMs(from: Reader, key: string): number {
  const ms = from.milliseconds(key, 0);
  return ms > 0 ? ms : Number.POSITIVE_INFINITY;
}

const RESOURCES: Readonly<Record<string, string>> = {
  "max-servers": "instances",
  "max-cores": "cores",
  "max-ram": "ram",
  "max-volumes": "volumes",
  "max-volume-gb": "volume-gb",
};

/** Limits by tenant (docs/contract/config.md, "Tenant limits"); other keys are resources of their own name. */
export function compileTenantLimits(main: Reader): ReadonlyMap<string, Resources> {
  const limits = new Map<string, Resources>();
  for (const from of main.mappings("tenant-resource-limits", true)) {
    const tenant = from.needed("tenant-name");
    if (tenant === undefined) continue;
    if (limits.has(tenant)) from.warn("tenant-name", `repeats tenant ${tenant}; the last one counts`);
    const amounts: Record<string, number> = {};
    for (const key of Object.keys(from.raw)) {
      if (key === "tenant-name" || !from.has(key)) continue;
      const resource = Object.hasOwn(RESOURCES, key) ? RESOURCES[key]! : key;
      if (key.startsWith("max-") && resource === key) {
        from.warn(
          key,
          `limits a resource of the name ${key}, which no driver has; known: ${Object.keys(RESOURCES).join(", ")}`,
        );
      }
      amounts[resource] = from.number(key, Number.POSITIVE_INFINITY);
    }
    limits.set(tenant, amounts);
  }
  return limits;
}
