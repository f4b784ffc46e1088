import type { Explanation } from "@nodeyard/operations";
import { labelsText, plain } from "@nodeyard/operations/listing";
import { imageText } from "./story-image.ts";
import { estimateText, poolsText } from "./story-pools.ts";
import { factLines, sinceText, tryText, valueText } from "./story-values.ts";
import { waterfall } from "./waterfall.ts";

type Wait = NonNullable<Explanation["waits_for"]>;

/** What the text depends on besides the explanation. */
export interface StoryContext {
  /** The journal of this machine. */
  readonly journal: string;
  /** Tree time, milliseconds. */
  readonly now: number;
  /** Of the terminal. */
  readonly columns: number;
}

/**
 * The story for people, in the order of what they ask: what it is, why it waits, what is next, when, who says so, and how it came
 * to this. Control characters are replaced at the end, because names and reasons come from outside.
 */
export function storyText(story: Explanation, { journal, now, columns }: StoryContext): string {
  const { kind, id, state, since, about, waits_for: waitsFor, next, pools, steps } = story;
  const known =
    "labels" in about ? { ...about, labels: labelsText(about.labels as readonly string[]) } : about;
  const lines = [`${kind} ${id} is ${state}${sinceText(since, now)}`, ...factLines(known, now)];
  if (waitsFor !== null) lines.push("", ...waitText(waitsFor, story, now));
  lines.push("", `Next: ${next}${nextText(waitsFor, now)}`);
  if (story.estimate !== null)
    lines.push(`Estimate: ${estimateText(story.estimate)} in ${story.estimate.pool}.`);
  else if (pools.some(({ no_estimate }) => no_estimate !== null))
    lines.push("Estimate: none; each pool says why.");
  if (pools.length > 0) lines.push("", "Pools:", ...poolsText(pools, waitsFor, now, columns));
  if (story.image !== undefined) lines.push(...imageText(story.image, now));
  lines.push(...silentText(story));
  if (steps.length > 0) lines.push("", "Steps:", ...waterfall(steps, now, columns));
  // Labels and images have no journal events; their records show their history.
  if (kind !== "label" && kind !== "image") lines.push("", ...historyText(story, journal, now));
  return `${lines.map(plain).join("\n")}\n`;
}

/** Events of all journals that were read, oldest first, or why there are none. */
function historyText(
  { events, journal: { problem }, steps }: Explanation,
  journal: string,
  now: number,
): string[] {
  if (events.length === 0)
    return [`No history: ${problem ?? `neither a launcher nor the journal ${journal} has any`}.`];
  const several = new Set(events.map(({ by }) => by).filter((by) => by !== null)).size > 1;
  // Steps have just been drawn.
  const listed = events.filter(({ event }) => event !== "node.step" || steps.length === 0);
  return [
    "So far:",
    ...listed.map((event) => `  ${eventText(event, several, now)}`),
    ...(problem === null ? [] : [`  There may be more: ${problem}.`]),
  ];
}

/** The reason with its source, where that is weaker than a launcher's word. */
function waitText(
  { meaning, code, since, facts, source }: Wait,
  { journal }: Explanation,
  now: number,
): string[] {
  const lines = [`It waits: ${meaning} (${code})${sinceText(since, now)}`, ...factLines(facts, now)];
  if (source === "tree" && journal.problem !== null)
    lines.push(`  This comes from the records. No launcher gave its own reason: ${journal.problem}.`);
  if (source === "journal")
    lines.push("  This was recorded when the wait began; no launcher has reported since.");
  return lines;
}

function nextText(waitsFor: Wait | null, now: number): string {
  if (waitsFor?.next_try == null) return "";
  return ` Next try: ${tryText(waitsFor.next_try, now) || "now"}.`;
}

/** Members that did not answer: the story may be incomplete. */
function silentText({ members: { answered, silent } }: Explanation): string[] {
  const cut = answered.filter(({ left_out }) => left_out.events + left_out.pools > 0);
  if (silent.length + cut.length === 0) return [];
  return [
    "",
    ...silent.map(
      ({ member, why }) => `Did not answer: ${member} (${why}). What only it knows is missing here.`,
    ),
    ...cut.map(
      ({ member, left_out: { events, pools } }) =>
        `The answer of ${member} was too long; it left out ${events} events, ${pools} pools.`,
    ),
  ];
}

/** One event in a line: its facts as `key=value`, those of a wait without the frame around them. */
function eventText(past: Explanation["events"][number], several: boolean, now: number): string {
  const { facts: inner, code: _code, since: _since, nextTry: _nextTry, ...outer } = past.facts;
  const all = { node: past.node, ...outer, ...(typeof inner === "object" ? inner : {}) };
  const text = Object.entries(all)
    .filter(([key, value]) => valueText(key, value, now) !== "" && key !== "request")
    .map(([key, value]) => ` ${key}=${valueText(key, value, now)}`);
  const who = several && past.by !== null ? `[${past.by}] ` : "";
  const facts = text.length === 0 ? "" : `:${text.join("")}`;
  return `${past.at}  ${who}${past.meaning ?? past.event}${facts}`;
}
