/** A cell as the old command line printed it (docs/contract/operations.md, "Tables"). */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return value.map(cell).join(",");
  if (typeof value === "object") return JSON.stringify(value);
  return plain(String(value));
}

/**
 * A table that grows row by row; its lines are made when all are there. Four at least: rules above, below the header, and at the end.
 * Text from outside cannot draw lines of its own.
 */
export class Table {
  readonly #headings: readonly string[];
  /** Of each column, in characters: of its widest cell so far. */
  readonly #widths: number[];
  readonly #rows: (readonly string[])[] = [];

  constructor(headings: readonly string[]) {
    this.#headings = headings;
    this.#widths = headings.map(widthOf);
  }

  /** One row; `values` in the order of the headings. */
  add(values: readonly unknown[]): void {
    const cells = values.map(cell);
    for (const [at, text] of cells.entries())
      this.#widths[at] = Math.max(this.#widths[at] ?? 0, widthOf(text));
    this.#rows.push(cells);
  }

  /** Without newlines. Rows that are added later change the widths, so call it when all are there. */
  *lines(): Generator<string> {
    const rule = `+${this.#widths.map((width) => "-".repeat(width + 2)).join("+")}+`;
    yield rule;
    yield this.#line(this.#headings);
    yield rule;
    for (const row of this.#rows) yield this.#line(row);
    yield rule;
  }

  #line(cells: readonly string[]): string {
    const padded = cells.map((text, at) => ` ${text}${" ".repeat(this.#widths[at]! - widthOf(text))} `);
    return `|${padded.join("|")}|`;
  }
}

/** A whole table as text, as wide as its widest cells; `Table` gives the lines one by one. */
export function renderTable(headings: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const table = new Table(headings);
  for (const row of rows) table.add(row);
  return `${[...table.lines()].join("\n")}\n`;
}

/** Characters, not code units; most texts are plain ASCII. */
function widthOf(text: string): number {
  return /^[\x20-\x7e]*$/.test(text) ? text.length : [...text].length;
}

/**
 * How ages are written. `text`: for people. `seconds`: for programs that read the command line. `epoch`: the second of the change, which the
 * old web API gives builds and uploads under the name of an age (docs/contract/operations.md, "Columns").
 */
export type AgeFormat = "text" | "seconds" | "epoch";

/** An age, or the rest of a time, in seconds. */
export function ageIn(format: AgeFormat, seconds: number): string | number {
  return format === "text" ? age(seconds) : Math.max(0, Math.floor(seconds));
}

/** Seconds as `DD:HH:MM:SS`; a time in the future counts as now. Days have two digits or more. */
export function age(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const parts = [whole / 86_400, (whole / 3_600) % 24, (whole / 60) % 60, whole % 60];
  return parts.map((part) => String(Math.floor(part)).padStart(2, "0")).join(":");
}

/**
 * Records come from others: control characters would reach the terminal as commands. Each becomes a space, so that widths stay right.
 */
export function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are exactly what is taken out
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, " ");
}

/**
 * Labels as people write them, "noble:3, arm": each once, with its count, in the order of its first place. Labels that are interleaved lose that
 * order.
 */
export function labelsText(labels: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  return [...counts].map(([label, count]) => (count === 1 ? label : `${label}:${count}`)).join(", ");
}
