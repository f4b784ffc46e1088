import { add, DriverError, type Resources, type SharedValues } from "@nodeyard/driver";
import type { Arm } from "./arm.ts";
import { type AzureResource, keyOf } from "./resources.ts";

/** The list of sizes is long, and changes when Azure builds or the subscription gets rights. */
const LASTING = { freshMs: 6 * 3_600_000, staleMs: 24 * 3_600_000 };
/** The launcher keeps quotas, too. */
const USAGES_MS = 30_000;

/** What a location sells. */
interface Sku {
  readonly name?: string;
  readonly resourceType?: string;
  readonly family?: string;
  readonly locationInfo?: readonly { readonly location?: string; readonly zones?: readonly string[] }[];
  readonly capabilities?: readonly { readonly name?: string; readonly value?: string }[];
  readonly restrictions?: readonly {
    readonly type?: string;
    readonly reasonCode?: string;
    readonly restrictionInfo?: { readonly zones?: readonly string[] };
  }[];
}

/** The limit of a quota and its use by the whole subscription in a location. */
interface Usage {
  readonly name: { readonly value: string };
  readonly currentValue: number;
  readonly limit: number;
}

/** What a machine of a size is. */
export interface Size {
  readonly vcpus: number;
  /** MiB. */
  readonly ram: number;
  /** Azure's name of the quota that counts the vCPUs of regular machines. */
  readonly family: string;
  /** Where the subscription may have it; empty: the location has no zones, or none is left. */
  readonly zones: readonly string[];
  /** Why the subscription may not have it in the location; null: it may. */
  readonly refused: string | null;
}

export type Sizes = ReturnType<typeof sizesOf>;

/** Sizes and quotas of a location. */
export function sizesOf(arm: Pick<Arm, "list">, location: string, shared: SharedValues) {
  const compute = "/providers/Microsoft.Compute";
  const loadSizes = async (signal: AbortSignal) => {
    const skus = await arm.list<Sku>(`${compute}/skus`, signal, { $filter: `location eq '${location}'` });
    const machines = skus.filter(({ resourceType }) => resourceType === "virtualMachines");
    return new Map(machines.flatMap((sku) => sizeOf(sku, location)));
  };
  const loadUsages = (signal: AbortSignal) =>
    arm.list<Usage>(`${compute}/locations/${encodeURIComponent(location)}/usages`, signal);

  /** All sizes by name in lower case. */
  const all = (signal: AbortSignal): Promise<ReadonlyMap<string, Size>> =>
    shared.get(`sizes of ${location}`, { load: loadSizes, ...LASTING }, signal);

  return {
    all,

    /** Rejects with `configuration` for a size that the subscription cannot have here. */
    async of(name: string, signal: AbortSignal): Promise<Size> {
      const size = (await all(signal)).get(keyOf(name));
      const why = size === undefined ? "there is none" : size.refused;
      if (size !== undefined && why === null) return size;
      throw new DriverError(
        "configuration",
        `no machine of size ${name} can be had in ${location}: ${why}; correct vm-size`,
      );
    },

    /** Limits by name, less what others use of them: Azure counts the whole subscription, and the caller the listed machines. */
    async limits(listed: readonly AzureResource[], signal: AbortSignal): Promise<Resources> {
      const usages = shared.get(`quotas of ${location}`, { load: loadUsages, freshMs: USAGES_MS }, signal);
      const sizes = await all(signal);
      const own = listed.reduce<Resources>((sum, vm) => add(sum, usedBy(vm, sizes, location)), {});
      return Object.fromEntries(
        (await usages).map(({ name: { value }, currentValue, limit }) => {
          const name = NAMES[value] ?? value;
          return [name, Math.max(0, limit - Math.max(0, currentValue - (own[name] ?? 0)))] as const;
        }),
      );
    },
  };
}

/** Azure's names of quotas that have a name of their own here. `cores` counts spot machines, too, and so is not this quota. */
const NAMES: Readonly<Record<string, string>> = { virtualMachines: "instances", cores: "regional-vcpus" };

/** What a machine uses. Spot machines have a quota of their own. */
export function amountsOf({ vcpus, ram, family }: Size, spot: boolean): Resources {
  const counted = spot ? { lowPriorityCores: vcpus } : { "regional-vcpus": vcpus, [family]: vcpus };
  return { instances: 1, cores: vcpus, ram, ...counted };
}

/** What a listed machine uses of a location's quotas; of a size that is not sold any more only the machine is known. */
export function usedBy(vm: AzureResource, sizes: ReadonlyMap<string, Size>, location: string): Resources {
  // A group has machines of any location.
  if (keyOf(vm.location) !== keyOf(location)) return {};
  const size = sizes.get(keyOf(vm.properties.hardwareProfile?.vmSize));
  return size === undefined ? { instances: 1 } : amountsOf(size, vm.properties.priority === "Spot");
}

/** Zones and restrictions are those of the location; the list may have others, too. */
function sizeOf(sku: Sku, location: string): readonly (readonly [string, Size])[] {
  const here = sku.locationInfo?.find((one) => keyOf(one.location) === keyOf(location));
  if (here === undefined || sku.name === undefined) return [];
  const capability = (wanted: string) =>
    Number(sku.capabilities?.find(({ name }) => name === wanted)?.value ?? 0);
  const restrictions = sku.restrictions ?? [];
  const closed = new Set(restrictions.flatMap(({ restrictionInfo }) => restrictionInfo?.zones ?? []));
  const refusal = restrictions.find(({ type }) => type === "Location");
  const size = {
    vcpus: capability("vCPUsAvailable") || capability("vCPUs"),
    ram: Math.round(capability("MemoryGB") * 1_024),
    family: sku.family ?? "",
    zones: (here.zones ?? []).filter((zone) => !closed.has(zone)).sort(),
    refused: refusal === undefined ? null : (refusal.reasonCode ?? "it is restricted"),
  };
  return [[keyOf(sku.name), size]];
}
