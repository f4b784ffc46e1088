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

/** Suffixes of quantities, by powers of a thousand and of 1024, and what they multiply by. */
const SCALES = new Map<string, number>([
  ...["n", "u", "m", "", "k", "M", "G", "T", "P", "E"].map(
    (suffix, at) => [suffix, 1000 ** (at - 3)] as const,
  ),
  ...["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].map((suffix, at) => [suffix, 1024 ** (at + 1)] as const),
]);

/** A quantity ("500m", "2Gi", "1e3") in its base unit (bytes, cores, counts). NaN for any other text. A number is a count. */
export function quantity(value: string | number): number {
  // An exponent or a suffix, never both.
  const [, digits, suffix = ""] =
    /^([+-]?[\d.]+(?:[eE][+-]?\d+$)?)([a-zA-Z]{0,2})$/.exec(String(value)) ?? [];
  return Number(digits) * (SCALES.get(suffix) ?? Number.NaN);
}
