/** Milliseconds since 1970; NaN when the text is not a time. */
export function msOf(iso: string | null | undefined): number {
  return iso == null ? Number.NaN : Date.parse(iso);
}

/** How often each label is wanted. */
export function countsOf(labels: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  return counts;
}

/** A part of a text: words, something with a view of its own, or a moment in ISO 8601. */
export type Part =
  | { readonly text: string }
  | { readonly view: string; readonly id: string }
  | { readonly at: string };

/** Ids have a form; those of leases could be any number in hexadecimal, so the word must stand before them. A node's begins with zeros. */
const PARTS =
  /(?<![\w-])(?:(?<requests>\d{3}-\d{10})|(?<nodes>0\d{9}))(?![\w-]|\.\d)|(?<=[Ll]ease[ :])(?<leases>[0-9a-f]{12})(?!\w)|(?:\bat )?(?<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/g;

/** Finds ids and times in a text of the program. */
export function partsOf(text: string): readonly Part[] {
  const parts: Part[] = [];
  let from = 0;
  for (const { index, 0: found, groups = {} } of text.matchAll(PARTS)) {
    if (index > from) parts.push({ text: text.slice(from, index) });
    const { at, ...views } = groups;
    const [view = ""] = Object.keys(views).filter((one) => views[one] !== undefined);
    parts.push(at === undefined ? { view, id: found } : { at });
    from = index + found.length;
  }
  if (from < text.length) parts.push({ text: text.slice(from) });
  return parts;
}

const LOCAL: Readonly<Record<string, string>> = {
  socket: "local commands",
  listener: "the token of the web interface",
};

/** The caller of the API for people: the names of tokens and of people are their own. */
export function whoText(name: string): string {
  return LOCAL[name] ?? name;
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
