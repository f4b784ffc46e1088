import { meaningOf, type Story } from "../operations/index.ts";
import type { PastEvent } from "../telemetry/index.ts";
import { labelsText } from "./arguments.ts";
import { plain, span } from "./table.ts";

const MANY = 8;

/** The story as an object whose keys never change; times are ISO 8601. */
export function storyJson(story: Story, journal: string): string {
  const { kind, id, state, about, waitsFor, next, history } = story;
  const waits =
    waitsFor === null
      ? null
      : {
          code: waitsFor.code,
          meaning: waitsFor.meaning,
          facts: waitsFor.facts,
          since: iso(waitsFor.since),
          next_try: iso(waitsFor.nextTry),
          source: waitsFor.source,
        };
  const events = history.events.map((past) => ({
    at: iso(past.at),
    event: past.event,
    meaning: meaningOf(past),
    request: past.request,
    node: past.node,
    facts: past.facts,
  }));
  const object = {
    kind,
    id,
    state,
    since: iso(story.since),
    about,
    waits_for: waits,
    next,
    events,
    journal: { file: journal, problem: history.problem },
  };
  return `${JSON.stringify(object, null, 2)}\n`;
}

/** The story for people; `now` is tree time, milliseconds. */
export function storyText(story: Story, journal: string, now: number): string {
  const { kind, id, state, since, about, waitsFor, next, history } = story;
  const lines = [`${kind} ${id} is ${state}${sinceText(since, now)}`];
  for (const [key, value] of Object.entries(about)) {
    const text = key === "labels" ? labelsText(value as readonly string[]) : valueText(value);
    if (text !== "") lines.push(`  ${key.replaceAll("_", " ").padEnd(16)}${text}`);
  }
  if (waitsFor !== null) {
    lines.push("", `It waits: ${waitsFor.meaning} (${waitsFor.code})${sinceText(waitsFor.since, now)}`);
    for (const [key, value] of Object.entries(waitsFor.facts)) {
      const text = valueText(value);
      if (text !== "") lines.push(`  ${key.replaceAll("_", " ").padEnd(16)}${text}`);
    }
    if (waitsFor.source === "tree" && history.problem !== null)
      lines.push(`  This is what the records show. No launcher's own reason is at hand: ${history.problem}.`);
  }
  const when = waitsFor?.nextTry === null || waitsFor === null ? "" : ` Next try: ${iso(waitsFor.nextTry)}.`;
  lines.push("", `Next: ${next}${when}`);
  if (history.events.length > 0) {
    lines.push("", "So far:");
    for (const event of history.events) lines.push(`  ${eventText(event)}`);
  } else lines.push("", `No history: ${history.problem ?? `the journal ${journal} has nothing of it`}.`);
  return `${lines.map(plain).join("\n")}\n`;
}

function eventText(past: PastEvent): string {
  const { facts: inner, code: _code, since: _since, nextTry: _nextTry, ...outer } = past.facts;
  const all = { node: past.node, ...outer, ...(typeof inner === "object" ? inner : {}) };
  const text = Object.entries(all)
    .filter(([key, value]) => valueText(value) !== "" && key !== "request")
    .map(([key, value]) => ` ${key}=${valueText(value)}`);
  return `${iso(past.at)}  ${meaningOf(past) ?? past.event}${text.length === 0 ? "" : `:${text.join("")}`}`;
}

function valueText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return listText(value.map(valueText));
  if (typeof value === "object") return Object.values(value).map(valueText).filter(Boolean).join(" ");
  return String(value);
}

/** Many in one line help nobody: the first and the last of them, and how many; `--json` has all. */
function listText(texts: readonly string[]): string {
  if (texts.length <= MANY) return texts.join(", ");
  return `${texts[0]}, ${texts[1]} ... ${texts.at(-1)} (${texts.length} in all)`;
}

function sinceText(since: number | null, now: number): string {
  return since === null ? "" : ` since ${iso(since)} (${span((now - since) / 1000)})`;
}

function iso(ms: number | null): string | null {
  return ms === null || !Number.isFinite(ms) || Math.abs(ms) > 8.64e15 ? null : new Date(ms).toISOString();
}
