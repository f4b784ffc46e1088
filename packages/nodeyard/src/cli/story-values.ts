import { span } from "../listing/index.ts";
import { isMoment, iso } from "../operations/index.ts";

const MANY = 8;

/** One line per fact that says something; `now` is tree time, milliseconds. */
export function factLines(facts: Readonly<Record<string, unknown>>, now: number): string[] {
  return Object.entries(facts).flatMap(([key, value]) => {
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

export function valueText(key: string, value: unknown, now: number): string {
  if (value === null || value === undefined) return "";
  if (isMoment(key, value)) return `${iso(value)} (${span((now - value) / 1_000)} ago)`;
  if (Array.isArray(value)) return listText(value.map((each) => valueText("", each, now)));
  if (typeof value === "object")
    return Object.entries(value)
      .map(([inner, each]) => {
        const text = valueText(inner, each, now);
        return typeof each === "number" || typeof each === "boolean" ? `${inner} ${text}` : text;
      })
      .filter(Boolean)
      .join(" ");
  if (typeof value === "boolean") return value ? "yes" : "no";
  return String(value);
}

/** Many in one line help nobody: the first and the last of them, and how many; `--json` has all. */
function listText(texts: readonly string[]): string {
  if (texts.length <= MANY) return texts.join(", ");
  return `${texts[0]}, ${texts[1]} ... ${texts.at(-1)} (${texts.length} in all)`;
}

export function sinceText(since: number | null, now: number): string {
  return since === null ? "" : ` since ${iso(since)} (${span((now - since) / 1_000)})`;
}
