/** What differs from run to run and is the same thing wherever it stands: ids of leases, requests and nodes. */
const ID = /\b(?:[0-9a-f]{12}|\d{3}-\d{10}|\d{10})\b/;
/** What differs from run to run, and what it may be instead. */
const VARIES: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/, "[0-9a-f-]{36}"],
  [/\d{4}-\d\d-\d\dT[\d:.]+Z/, "\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z"],
  [/\b\d\d:\d\d:\d\d:\d\d\b/, "\\d\\d:\\d\\d:\\d\\d:\\d\\d"],
  [/\(\d+ s\)/, "\\([^()]+\\)"],
  [/ *\b\d+\.\d+s/, " *\\d+\\.\\d+s"],
  [/\b198\.1[89]\.\d+\.\d+/, "198\\.1[89]\\.\\d+\\.\\d+"],
  [/\b[a-z]+@[a-z]+\b/, "\\S+@\\S+"],
  [/\b[a-z]+@/, "\\S+@"],
  [/-{4,}/, "-{4,}"],
  [/ *\.\.\. */, ".*?"],
  [/ +/, " +"],
];
const TOKEN = new RegExp(
  [...VARIES.map(([pattern]) => pattern), ID].map(({ source }) => `(?:${source})`).join("|"),
  "g",
);

const NAME = new RegExp(`${ID.source}|\\b\\d{4,5}\\b`, "g");

/** Ids and ports of a page, and what they are in this run. */
export class Names {
  readonly #known: Map<string, string>;

  constructor(ports: ReadonlyMap<string, string>) {
    this.#known = new Map(ports);
  }

  /** A text of the page as this run has it. */
  in(text: string): string {
    return text.replaceAll(NAME, (name) => this.#known.get(name) ?? name);
  }

  /** Whether a run printed what the page prints; if so, learns its ids. A line `...` is any lines, `...` in a line any text. */
  learn(page: string, printed: string): boolean {
    const seen = new Set<string>();
    const lines = page
      .split("\n")
      .map((line) => (line.trim() === "..." ? "(?:.*\\n)*?" : `${this.#pattern(line, seen)} *\\n`));
    const found = new RegExp(`^${lines.join("")}$`).exec(`${printed.trimEnd()}\n`);
    for (const id of found === null ? [] : seen) this.#known.set(id, found!.groups![groupOf(id)]!);
    return found !== null;
  }

  #pattern(line: string, seen: Set<string>): string {
    let pattern = "";
    let at = 0;
    for (const { 0: token, index } of line.matchAll(TOKEN)) {
      pattern += literal(this.in(line.slice(at, index))) + this.#token(token, seen);
      at = index + token.length;
    }
    return pattern + literal(this.in(line.slice(at)));
  }

  #token(token: string, seen: Set<string>): string {
    const known = this.#known.get(token);
    if (known !== undefined) return literal(known);
    const [, varied] = VARIES.find(([pattern]) => new RegExp(`^(?:${pattern.source})$`).test(token)) ?? [];
    if (varied !== undefined) return varied;
    if (seen.has(token)) return `\\k<${groupOf(token)}>`;
    seen.add(token);
    return `(?<${groupOf(token)}>${kind(token)})`;
  }
}

function groupOf(id: string): string {
  return `id${id.replaceAll("-", "_")}`;
}

function kind(id: string): string {
  if (id.includes("-")) return "\\d{3}-\\d{10}";
  return id.length === 10 ? "\\d{10}" : "[0-9a-f]{12}";
}

function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
