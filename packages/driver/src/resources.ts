/**
 * Amounts by resource name: `instances`, `cores`, `ram` (MiB), `volumes`, `volume-gb`, and whatever a driver adds.
 * In limits an absent name means no limit; in use and need it means none.
 */
export type Resources = Readonly<Record<string, number>>;

/** a + b, name by name. */
export function add(a: Resources, b: Resources): Resources {
  const sum: Record<string, number> = { ...a };
  for (const name in b) sum[name] = (sum[name] ?? 0) + b[name]!;
  return sum;
}

/** a - b, name by name; may be negative. */
export function subtract(a: Resources, b: Resources): Resources {
  const rest: Record<string, number> = { ...a };
  for (const name in b) rest[name] = (rest[name] ?? 0) - b[name]!;
  return rest;
}

/** The first resource of which `need` wants more than `limit` leaves beside `used`; undefined: it fits. */
export function exceeded(limit: Resources, used: Resources, need: Resources): string | undefined {
  // No list of entries: queues ask this for thousands of requests.
  for (const name in need) {
    const amount = need[name]!;
    if (amount > 0 && (used[name] ?? 0) + amount > (limit[name] ?? Number.POSITIVE_INFINITY)) return name;
  }
  return undefined;
}
