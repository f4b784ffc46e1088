import type { Resources } from "@nodeyard/driver";
import type { PodContainer } from "./client/index.ts";

type Quantities = Readonly<Record<string, string | number>>;

/** Suffixes of quantities (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/). */
const SCALES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** A Kubernetes quantity ("500m", "2Gi", "1e3") in its base unit (bytes, cores, counts). NaN for any other text. A number is a count. */
export function quantity(value: string | number): number {
  // An exponent or a suffix, never both.
  const [, digits, suffix = ""] =
    /^([+-]?[\d.]+(?:[eE][+-]?\d+$)?)([a-zA-Z]{0,2})$/.exec(String(value)) ?? [];
  return digits === undefined ? Number.NaN : Number(digits) * (SCALES[suffix] ?? Number.NaN);
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
  const amounts: Record<string, number> = {};
  for (const [key, value] of Object.entries(quantities)) {
    const [name, unit] = UNITS[key] ?? [key, 1];
    amounts[name] = quantity(value) / unit;
  }
  return amounts;
}

/**
 * Amounts that the scheduler counts for a pod's containers: their requests, or their limits where there are no requests. Init
 * containers are left out: they end before the node is used.
 */
export function containerAmounts(containers: readonly PodContainer[]): Resources {
  const sum: Record<string, number> = {};
  for (const { resources } of containers) {
    const amounts = amountsOf({ ...resources?.limits, ...resources?.requests });
    for (const [name, amount] of Object.entries(amounts)) sum[name] = (sum[name] ?? 0) + amount;
  }
  return sum;
}

/**
 * Problem of a container's amounts, as the end of a sentence: what is no quantity, is negative, or is requested above its limit. The API
 * server would refuse each pod.
 */
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
