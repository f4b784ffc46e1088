import { span } from "@nodeyard/client/steps";

/** Items of a list that are still shown whole. */
const MANY = 8;
/** The last moment that has a date, milliseconds (ECMA-262, "Time Values and Time Range"). */
const LAST_MS = 8.64e15;
/** Replaces a reason of a later release. */
export const UNKNOWN_REASON = "a reason that this release does not know";

/** One line per fact that says something; `now` is tree time, milliseconds. */
export function factLines(facts: Readonly<Record<string, unknown>>, now: number): string[] {
  return Object.entries(facts).flatMap(([key, value]) => {
    // Of a log: each line as it stands there.
    if (key === "last_lines" && Array.isArray(value))
      return ["  its last lines:", ...value.map((line) => `    ${line}`)];
    const text = valueText(key, value, now);
    return text === "" ? [] : [`  ${key.replaceAll("_", " ").padEnd(15)} ${text}`];
  });
}

/** The facts in a row. */
export function factRow(facts: Readonly<Record<string, unknown>>, now: number): string {
  return Object.entries(facts)
    .map(([key, value]) => [key, valueText(key, value, now)] as const)
    .filter(([, text]) => text !== "")
    .map(([key, text]) => `${key.replaceAll("_", " ")} ${text}`)
    .join(", ");
}

/**
 * A fact for people. Objects become their values, numbers and flags with their names. Empty: nothing is known, and the fact is
 * not shown.
 */
export function valueText(key: string, value: unknown, now: number): string {
  if (value === null || value === undefined) return "";
  const ms = momentOf(key, value);
  if (ms !== undefined) return `${new Date(ms).toISOString()} (${span((now - ms) / 1_000)} ago)`;
  if (Array.isArray(value)) return listText(value.map((each) => valueText("", each, now)));
  if (typeof value === "object")
    return Object.entries(value)
      .map(([inner, each]) => {
        const text = valueText(inner, each, now);
        // A number or "yes" without its name says nothing; a text does.
        return typeof each === "number" || typeof each === "boolean" ? `${inner} ${text}` : text;
      })
      .filter(Boolean)
      .join(" ");
  if (typeof value === "boolean") return value ? "yes" : "no";
  return String(value);
}

/** A long list is shortened to its first and last items and their number; `--json` has all. */
function listText(texts: readonly string[]): string {
  if (texts.length <= MANY) return texts.join(", ");
  return `${texts[0]}, ${texts[1]} ... ${texts.at(-1)} (${texts.length} in all)`;
}

/** Milliseconds of a fact that is a moment, by its name; undefined: it is none. */
function momentOf(key: string, value: unknown): number | undefined {
  if (!/_(at|since)$/.test(key)) return undefined;
  const ms = typeof value === "string" ? Date.parse(value) : value;
  return typeof ms === "number" && Math.abs(ms) <= LAST_MS ? ms : undefined;
}

/** `since`: ISO 8601. */
export function sinceText(since: string | null, now: number): string {
  return since === null ? "" : ` since ${since} (${span((now - Date.parse(since)) / 1_000)})`;
}

/** When it is tried next; empty: unknown, or now. `next`: ISO 8601. */
export function tryText(next: string | null, now: number): string {
  return next === null || Date.parse(next) <= now ? "" : next;
}
