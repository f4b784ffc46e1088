import { limits, usage } from "./machines.ts";
import { SIZES, ZONES } from "./settings.ts";
import type { Json, World } from "./world.ts";

/** `GET locations/LOCATION/usages`. */
export function usages(world: World, location: string): readonly Json[] {
  const used = usage(world, location);
  return Object.entries(limits(world)).map(([value, limit]) => ({
    ...{ limit, unit: "Count", currentValue: used[value] ?? 0 },
    name: { value, localizedValue: value },
  }));
}

/** `GET skus`. */
export function skus(world: World, location: string): readonly Json[] {
  const { restrictions } = world.settings;
  const sizes = Object.entries(SIZES).map(([name, { family, vcpus, gib }]) => ({
    ...{
      resourceType: "virtualMachines",
      name,
      tier: "Standard",
      size: name.split("_").slice(1).join("_"),
      family,
    },
    locations: [location],
    locationInfo: [{ location, zones: ZONES, zoneDetails: [] }],
    capabilities: [
      { name: "vCPUs", value: String(vcpus) },
      { name: "MemoryGB", value: String(gib) },
      { name: "LowPriorityCapable", value: "True" },
      { name: "HyperVGenerations", value: "V1,V2" },
    ],
    restrictions: restrictions
      .filter(({ size }) => size === name)
      .map(({ zone }) => ({
        ...{ type: zone === undefined ? "Location" : "Zone", values: [location] },
        restrictionInfo: { locations: [location], ...(zone !== undefined && { zones: [zone] }) },
        reasonCode: "NotAvailableForSubscription",
      })),
  }));
  const disk = {
    ...{ resourceType: "disks", name: "Premium_LRS", tier: "Premium", size: "P10" },
    ...{ locations: [location], locationInfo: [{ location, zones: ZONES, zoneDetails: [] }] },
    ...{ capabilities: [], restrictions: [] },
  };
  return [...sizes, disk];
}
