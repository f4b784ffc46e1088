import { span } from "../listing/index.ts";
import {
  iso,
  type PoolLine,
  type Story,
  unknownMeaning,
  verdictMeaning,
  type Wait,
} from "../operations/index.ts";
import { factRow, sinceText } from "./story-values.ts";

type Estimate = Omit<NonNullable<Story["estimate"]>, "pool">;

/** What every pool says, one after the other; those that have nothing to do with it as a number. */
export function poolsText(
  pools: readonly PoolLine[],
  told: Wait | null,
  now: number,
  columns: number,
): string[] {
  const concerned = pools.filter(({ outlook }) => outlook !== "lacks");
  const lacking = pools.length - concerned.length;
  const members = new Set(pools.map(({ member }) => member)).size;
  return [
    ...concerned.flatMap((line) => poolText(line, told, members > 1, now, columns)),
    ...(lacking === 0
      ? []
      : [`  ${lacking} other ${lacking === 1 ? "pool does" : "pools do"} not offer what it wants`]),
  ];
}

function poolText(
  line: PoolLine,
  told: Wait | null,
  several: boolean,
  now: number,
  columns: number,
): string[] {
  const { code, facts, outlook, position, waiting, since, nextTry, estimate, unknown } = line;
  const place = position === null ? "" : `, position ${position} of ${waiting}`;
  const where = several ? `${line.pool} of ${line.member}` : line.pool;
  const says = verdictMeaning(code, facts) ?? "a reason that this release does not know";
  const { pool: _pool, ...rest } = facts;
  // What was just said in full need not be said again.
  const again = told?.code === code && (told.facts.pool ?? line.pool) === line.pool;
  const next = nextTry === null || nextTry <= now ? "" : `next try ${iso(nextTry)}`;
  const why = unknown === null ? null : unknownMeaning(unknown);
  const likely =
    estimate === null ? (why === null ? "" : `no estimate: ${why}`) : `estimate: ${estimateText(estimate)}`;
  return [
    `  ${where}: ${outlook}${place}`,
    ...[`${says} (${code})${sinceText(since, now)}`, again ? "" : factRow(rest, now), next, likely]
      .filter((text) => text !== "")
      .flatMap((text) => wrap(text, columns - 6).map((part) => `      ${part}`)),
  ];
}

/** "in 1 min (40 s to 2 min, from 12 launches and 40 uses seen lately)". */
export function estimateText({ likelyMs, fromMs, toMs, launches, uses }: Estimate): string {
  const [likely, from, to] = [likelyMs, fromMs, toMs].map((ms) => span(ms / 1_000));
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

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
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
