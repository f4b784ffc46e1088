import { add, quantity, type Resources } from "@nodeyard/driver";

/** Amounts by resource, as Kubernetes has them: "500m", "2Gi", 1. */
type Quantities = Readonly<Record<string, string | number>>;

/** What is read of a container of a pod. */
export interface PodContainer {
  readonly name?: string;
  readonly resources?: { readonly requests?: Quantities; readonly limits?: Quantities };
}

/** Nodepool's name and unit for each resource of Kubernetes. Resources that are missing here keep Kubernetes' name. */
const UNITS: Readonly<Record<string, readonly [name: string, unit: number]>> = {
  cpu: ["cores", 1],
  memory: ["ram", 2 ** 20],
  "ephemeral-storage": ["ephemeral-storage", 1e6],
  pods: ["instances", 1],
};

/** Amounts of a mapping such as `resources.requests`: cores, MiB of `ram`, MB of `ephemeral-storage`, counts of anything else. */
export function amountsOf(quantities: Quantities): Resources {
  const amounts = Object.entries(quantities).map(([key, value]) => {
    const [name, unit] = UNITS[key] ?? [key, 1];
    return [name, quantity(value) / unit] as const;
  });
  return Object.fromEntries(amounts);
}

/** Amounts that the scheduler counts for a pod's containers: requests, else limits. Init containers end before the node is used. */
export function containerAmounts(containers: readonly PodContainer[]): Resources {
  const amounts = containers.map(({ resources }) =>
    amountsOf({ ...resources?.limits, ...resources?.requests }),
  );
  return amounts.reduce(add, {});
}

/** Why the API server would refuse a container's amounts, as the end of a sentence. */
export function quantityProblem({ resources }: PodContainer): string | undefined {
  const { requests = {}, limits = {} } = resources ?? {};
  for (const [key, value] of [...Object.entries(requests), ...Object.entries(limits)])
    if (!(quantity(value) >= 0))
      return `has ${key} ${JSON.stringify(value)}, which is no quantity of Kubernetes; write it as 500m, 2 or 4Gi`;
  const over = Object.keys(requests).find(
    (key) => quantity(requests[key]!) > quantity(limits[key] ?? Number.POSITIVE_INFINITY),
  );
  return over && `requests ${over} ${requests[over]}, which is more than its limit ${limits[over]}`;
}

/** Limits of a ResourceQuota (`spec.hard`) for requests and pods, under the names that nodes are counted with. */
export function quotaAmounts(hard: Quantities): Resources {
  const counted: Record<string, string | number> = {};
  for (const [key, value] of Object.entries(hard)) {
    const name = key.startsWith("requests.") ? key.slice("requests.".length) : key;
    // The launcher does not count other objects and limits. The API server enforces them and answers "exceeded quota".
    if (name.includes("limits.") || name.startsWith("count/")) continue;
    if (name in UNITS || key.startsWith("requests.")) counted[name] = value;
  }
  return amountsOf(counted);
}
