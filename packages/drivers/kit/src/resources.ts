/**
 * Amounts by resource name: `instances`, `cores`, `ram` (MiB), `volumes`, `volume-gb`, and names that a driver adds. A missing name
 * means no limit in limits, and zero in use and need.
 */
export type Resources = Readonly<Record<string, number>>;

/** a + b for each name. */
export function add(a: Resources, b: Resources): Resources {
  const sum: Record<string, number> = { ...a };
  for (const name in b) sum[name] = (sum[name] ?? 0) + b[name]!;
  return sum;
}

/** a - b for each name; may be negative. */
export function subtract(a: Resources, b: Resources): Resources {
  const rest: Record<string, number> = { ...a };
  for (const name in b) rest[name] = (rest[name] ?? 0) - b[name]!;
  return rest;
}

/** The first amount that is no number, infinite or negative, as `cores NaN`: sums with it would hold no limit. */
export function oddAmount(amounts: Resources): string | undefined {
  const odd = Object.entries(amounts).find(([, amount]) => !(Number.isFinite(amount) && amount >= 0));
  return odd?.join(" ");
}

/** The first resource for which `used` plus `need` exceeds `limit`; undefined when everything fits. */
export function exceeded(limit: Resources, used: Resources, need: Resources): string | undefined {
  // Without Object.entries, because queues call this for thousands of requests.
  for (const name in need) {
    const amount = need[name]!;
    if (amount > 0 && (used[name] ?? 0) + amount > (limit[name] ?? Number.POSITIVE_INFINITY)) return name;
  }
  return undefined;
}
