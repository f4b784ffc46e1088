// Amounts of resources as a page and a terminal show them. No other module is imported: a browser loads this file too.

/** "1.4 GiB". */
export function size(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let value = bytes;
  for (; value >= 1_024 && at < units.length - 1; at++) value /= 1_024;
  return `${value >= 10 || at === 0 ? Math.round(value) : value.toFixed(1)} ${units[at]}`;
}

/** `units` in steps of 1,000. */
function decimal(value: number, units: readonly string[]): string {
  const at = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  return `${Number((value / 1_000 ** at).toPrecision(3))} ${units[at]}`;
}

const RATES = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
const kib = (amount: number) => size(amount * 1_024);
const coresText = (milli: number) => `${milli / 1_000} ${Math.abs(milli) === 1_000 ? "core" : "cores"}`;
/** Format of amounts, by the resource names of provider quotas and of sliver managers (docs/contract/slivers.md, "Loans"). */
const AMOUNTS: readonly (readonly [names: RegExp, text: (amount: number) => string])[] = [
  [/^(millicores|cpuGuarantee|cpuCap)$/, coresText],
  [/^(ram|disk-mib)$/, (amount) => kib(amount * 1_024)],
  [/^net-kbit$/, (amount) => decimal(amount * 1_000, RATES)],
  [/^net2?(Guarantee|Cap)$/, (amount) => decimal(amount, RATES)],
  [/^net2?Day/, (amount) => `${kib(amount)} per day`],
  [/^(disk|memoryGuarantee|memoryCap)$/, kib],
  [/^io(Read|Write)$/, (amount) => `${size(amount)}/s`],
];

/** An amount with its unit. Counts have none. */
export function amountText(resource: string, amount: number): string {
  return AMOUNTS.find(([names]) => names.test(resource))?.[1](amount) ?? String(amount);
}

/** Readable name of a resource such as "disk-mib" or "cpuGuarantee", without the unit, which the amount has. */
export function resourceText(resource: string): string {
  return resource
    .replace(/-(mib|kbit)$/, "")
    .replace(/^millicores$/, "cpu")
    .replace(/^ram$/, "memory")
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** Resources of which machines and their slivers have bars, by their names in a provider's quota. */
export const BAR_RESOURCES = ["millicores", "ram", "disk-mib"] as const;

/** Amounts by resource, of a machine's sliver as REST has them. */
export interface Having {
  readonly guarantees: Amounts;
  readonly caps: Amounts;
  readonly borrowed: Amounts;
  readonly uses: Amounts;
}
type Amounts = Readonly<Record<string, number>>;

/** What the layers of a bar mean, those that cover others last, with the character of each on a terminal. */
export const LAYERS = {
  cap: ["-", "up to its cap"],
  guaranteed: ["=", "guaranteed"],
  borrowed: ["+", "borrowed"],
  lent: ["~", "lent"],
  used: ["#", "in use"],
} as const;

/** A part of a bar; `from` and `to` are fractions of its whole, 0 to 1. */
export interface Layer {
  readonly kind: keyof typeof LAYERS;
  readonly from: number;
  readonly to: number;
}

/** The bar of a resource, in the order in which its layers are drawn. `whole`: the amount at its end. */
export function layersOf(having: Having, resource: string, whole: number): readonly Layer[] {
  const [cap, guaranteed, loan, used] = amountsOf(having, resource);
  const layer = (kind: Layer["kind"], from: number, to: number): readonly Layer[] =>
    from < to && whole > 0 ? [{ kind, from: from / whole, to: Math.min(1, to / whole) }] : [];
  return [
    ...layer("cap", 0, cap),
    ...layer("guaranteed", 0, guaranteed),
    ...layer("borrowed", Math.max(0, cap - loan), cap),
    ...layer("lent", cap, cap - loan),
    ...layer("used", 0, used),
  ];
}

/** The amount at which the bars of all end, so that they can be compared. */
export function wholeOf(all: readonly Having[], resource: string): number {
  const amounts = all.map((having) => {
    const [cap, guaranteed, loan, used] = amountsOf(having, resource);
    return Math.max(cap, cap - loan, guaranteed, used);
  });
  return Math.max(0, ...amounts);
}

/** Without a cap the layer of a cap is missing, and so are those of loans, which are parts of caps. */
function amountsOf({ caps, guarantees, borrowed, uses }: Having, resource: string) {
  return [caps, guarantees, borrowed, uses].map((amounts) => amounts[resource] ?? 0) as [
    number,
    number,
    number,
    number,
  ];
}
