import { span } from "@nodeyard/client/steps";
import type { Explanation } from "@nodeyard/operations";
import { counted } from "@nodeyard/runtime";
import { factRow, sinceText, tryText, UNKNOWN_REASON } from "./story-values.ts";

type PoolLine = Explanation["pools"][number];
type Wait = Explanation["waits_for"];

/** The answer of each pool, one after the other; pools that the request does not concern are only counted. */
export function poolsText(pools: readonly PoolLine[], shown: Wait, now: number, columns: number): string[] {
  // `lacks`: the pool does not offer what is wanted, and never will without another configuration.
  const concerned = pools.filter(({ outlook }) => outlook !== "lacks");
  const lacking = pools.length - concerned.length;
  const members = new Set(pools.map(({ member }) => member)).size;
  return [
    ...concerned.flatMap((line) => poolText(line, shown, members > 1, now, columns)),
    ...(lacking === 0
      ? []
      : [`  ${counted(lacking, "other pool does", "other pools do")} not offer what it wants`]),
  ];
}

/**
 * `several`: more than one launcher answered, so each line names its member. `columns`: of the terminal; long reasons are
 * wrapped.
 */
function poolText(line: PoolLine, shown: Wait, several: boolean, now: number, columns: number): string[] {
  const { code, meaning, facts, outlook, position, waiting, since = null, estimate, no_estimate: why } = line;
  const place = position === null ? "" : `, position ${position} of ${waiting}`;
  const where = several ? `${line.pool} of ${line.member}` : line.pool;
  const { pool: _pool, offerings, ...rest } = facts;
  // A reason that was just printed is not repeated.
  const again = shown?.code === code && (shown.facts.pool ?? line.pool) === line.pool;
  const at = tryText(line.next_try, now);
  const next = at && `next try ${at}`;
  const likely =
    estimate === null ? (why === null ? "" : `no estimate: ${why}`) : `estimate: ${estimateText(estimate)}`;
  return [
    `  ${where}: ${outlook}${place}`,
    ...[
      `${meaning ?? UNKNOWN_REASON} (${code})${sinceText(since, now)}`,
      again ? "" : factRow(rest, now),
      next,
      likely,
    ]
      .filter((text) => text !== "")
      .flatMap((text) => wrap(text, columns - 6).map((part) => `      ${part}`)),
    ...offeringsText(offerings).map((text) => `      ${text}`),
  ];
}

/** What the labels may be bought as, as a table; the best first. */
function offeringsText(offerings: unknown): readonly string[] {
  if (!Array.isArray(offerings) || offerings.length === 0) return [];
  const keys = Object.keys(offerings[0] as object);
  const cell = (value: unknown) => (value === null || value === undefined ? "-" : String(value));
  const rows = [
    keys.map((key) => key.replaceAll("_", " ").toUpperCase()),
    ...offerings.map((row: Readonly<Record<string, unknown>>) => keys.map((key) => cell(row[key]))),
  ];
  const widths = keys.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((text, column) => text.padEnd(widths[column]!))
      .join("  ")
      .trimEnd(),
  );
}

/** "in 1 min (40 s to 2 min, from 12 launches and 40 uses seen lately)". */
export function estimateText({ launches, uses, ...seconds }: NonNullable<Explanation["estimate"]>): string {
  const [likely, from, to] = [seconds.likely_seconds, seconds.from_seconds, seconds.to_seconds].map(span);
  const basis = [
    ...(launches > 0 ? [counted(launches, "launch", "launches")] : []),
    ...(uses > 0 ? [counted(uses, "use", "uses")] : []),
  ];
  const notes = [
    ...(from === to ? [] : [`${from} to ${to}`]),
    ...(basis.length === 0 ? [] : [`from ${basis.join(" and ")} seen lately`]),
  ];
  return `in ${likely}${notes.length === 0 ? "" : ` (${notes.join(", ")})`}`;
}

/** Breaks at spaces; a word that is longer than a line keeps its own. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= Math.max(20, width))
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
