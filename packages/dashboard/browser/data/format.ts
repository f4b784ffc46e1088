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
/** Format of amounts, by the resource names of provider quotas and of sliver managers (docs/contract/slivers.md, "Loans"). */
const AMOUNTS: readonly (readonly [names: RegExp, text: (amount: number) => string])[] = [
  [/^(millicores|cpuGuarantee|cpuCap)$/, (amount) => `${amount / 1_000} CPU`],
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
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** Milliseconds since 1970; NaN when the text is not a time. */
export function msOf(iso: string | null | undefined): number {
  return iso == null ? Number.NaN : Date.parse(iso);
}

/** "fake-small × 3, fake-large". */
export function labelsText(labels: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  return [...counts].map(([label, count]) => (count === 1 ? label : `${label} × ${count}`)).join(", ");
}

const MANY = 8;
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** A fact of `explain` as text, "" for an empty one. Of a long list it has the first and last value and the count. */
export function factText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) {
    const texts = value.map(factText);
    if (texts.length <= MANY) return texts.join(", ");
    return `${texts[0]}, ${texts[1]} … ${texts.at(-1)} (${texts.length} in all)`;
  }
  if (typeof value === "string" && MOMENT.test(value)) return new Date(value).toLocaleString();
  if (typeof value !== "object") return String(value);
  return Object.entries(value)
    .map(([key, each]) => {
      const text = factText(each);
      return typeof each === "number" || typeof each === "boolean" ? `${key} ${text}` : text;
    })
    .filter((text) => text !== "")
    .join(" ");
}

/** Time of day, with the date when it is another day than `now`'s. */
export function clockText(iso: string, now: number): string {
  const at = new Date(iso);
  const time = at.toLocaleTimeString([], { hour12: false });
  const isToday = at.toDateString() === new Date(now).toDateString();
  return isToday ? time : `${at.toLocaleDateString([], { month: "short", day: "numeric" })} ${time}`;
}

/** Quotes a word for a POSIX shell if necessary. The text may come from any record, so it must not contain commands. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Command for an SSH login; undefined when the node is not reached by SSH. */
export function sshLine(
  address: string | null | undefined,
  port: number | string | null | undefined,
  username: string | null | undefined,
  type: string | null | undefined,
): string | undefined {
  if (address == null || address === "" || (type != null && type !== "ssh")) return undefined;
  const who = username == null || username === "" ? address : `${username}@${address}`;
  const where = port == null || Number(port) === 22 ? "" : ` -p ${quoted(String(port))}`;
  // After `--` a name that begins with a dash is not taken for an option.
  return `ssh${where} -- ${quoted(who)}`;
}

/** Lines for known_hosts, so that the first login accepts only the node's keys. */
export function knownHosts(address: string, port: number | string | null, keys: readonly string[]): string {
  const host = port === null || Number(port) === 22 ? address : `[${address}]:${port}`;
  return keys.map((key) => `${host} ${key}`).join("\n");
}
