import { type About, askMembers, type MemberAnswers, type Testimony } from "@nodeyard/asking";
import type { History, PastEvent, Subject } from "@nodeyard/telemetry";
import type { OperationHandles } from "../handles.ts";
import { meaningOf, verdictMeaning } from "./meaning.ts";
import { type PoolLine, poolLine, soonest } from "./pool-line.ts";
import { iso, timed } from "./reason.ts";
import type { ReportedHistory, Story, Wait } from "./story.ts";

/** Looks a thing up in the journal of this machine. Never throws: what cannot be read is the `problem` of the answer. */
export type ReadHistory = (subject: Subject) => History;

/** What live members say, together with the journal of this machine, whose launcher may be gone. */
export interface MemberReplies {
  readonly asked: MemberAnswers;
  readonly history: ReportedHistory;
}

/** Asks every live member about something. Never rejects. */
export type QueryMembers = (about: About) => Promise<MemberReplies>;

/** How long members have to answer, milliseconds: a person waits. */
const WITHIN_MS = 3_000;

/** Asks through the tree, and reads the journal of this machine. `withinMs`: how long members may take. */
export function queryMembers(
  handles: OperationHandles,
  read: ReadHistory,
  withinMs = WITHIN_MS,
): QueryMembers {
  return async (about) => {
    const asked = await askMembers(handles, about, withinMs);
    return { asked, history: merge(asked, read(about)) };
  };
}

/**
 * One history of many, oldest first, by the writers' clocks: each event once, since a launcher on this machine answers from the
 * journal that is also read here.
 */
export function merge({ answers }: MemberAnswers, local: History): ReportedHistory {
  const merged = new Map<string, PastEvent & { readonly by: string | null }>();
  const add = (event: PastEvent, by: string | null) => {
    const { at, event: name, request, node, facts } = event;
    const key = JSON.stringify([at, name, request, node, facts]);
    if (!merged.has(key)) merged.set(key, { at, event: name, request, node, facts, by });
  };
  for (const { hostname, testimony } of answers) for (const event of testimony.events) add(event, hostname);
  for (const event of local.events) add(event, null);
  const problems = answers.map(({ testimony }) => testimony.problem);
  // One journal that was read is enough: the others belong to other launchers.
  const known = local.problem === null || problems.includes(null);
  return {
    events: [...merged.values()]
      .sort((a, b) => a.at - b.at)
      .map((past) => ({ ...past, at: iso(past.at), meaning: meaningOf(past) })),
    problem: known ? null : (problems[0] ?? local.problem),
  };
}

/** The parts that all stories have. */
export function replyParts({
  asked,
  history,
}: MemberReplies): Pick<Story, "pools" | "estimate" | "history" | "asked"> {
  const pools = asked.answers.flatMap(({ member, hostname, testimony }) =>
    testimony.pools.map((standing) => poolLine(standing, member, hostname)),
  );
  return { pools, estimate: soonest(pools), history, asked };
}

/** The story of a subject that is not in the tree any more, from its journal events. `next`: what became of it. */
export function goneStory(
  { kind, id, about, next }: Pick<Story, "kind" | "id" | "about" | "next">,
  replies: MemberReplies,
  steps: Story["steps"] = [],
): Story {
  return {
    kind,
    id,
    state: "gone",
    since: null,
    about,
    waits_for: null,
    next: `Nothing. ${next}`,
    ...replyParts(replies),
    steps,
  };
}

/** A reason that the records alone give. `since`: ISO 8601. */
export function fromTree(
  code: string,
  meaning: string,
  facts: Wait["facts"] = {},
  since: string | null = null,
): Wait {
  return { code, meaning, since, source: "tree", facts: timed(facts), next_try: null };
}

/**
 * Reasons that only say that this launcher has nothing to do with the request now; any reason of another launcher says more, so
 * these count last.
 */
const WEAK: ReadonlySet<string> = new Set([
  "declined.here",
  "yield.capable",
  "pending.elsewhere",
  "pools.none",
  "tree.incomplete",
]);

/** Why a launcher has not opened a provider, which therefore gives no reason of its own. */
const CLOSED: ReadonlySet<string> = new Set([
  "provider.failing",
  "provider.foreign",
  "provider.configuration",
]);

const UNKNOWN = "A reason that this release does not know";

/** The best reason that live launchers give. A provider that is not open counts for more than a launcher without a reason. */
export function liveWait({ asked }: MemberReplies, pools: readonly PoolLine[]): Wait | undefined {
  const waits = asked.answers.flatMap(({ testimony }) => testimony.wait ?? []);
  // Who handles the request knows it best.
  const strong = waits.find(({ code }) => code === "handling") ?? waits.find(({ code }) => !WEAK.has(code));
  if (strong !== undefined) return waitOf(strong);
  const failing = pools.find(({ code, outlook }) => outlook === "waits" && CLOSED.has(code));
  if (failing !== undefined) return fromPool(failing);
  return waits[0] === undefined ? undefined : waitOf(waits[0]);
}

/** What the pool says, as the reason for all of it. */
export function fromPool({ code, meaning, since = null, facts, next_try, pool }: PoolLine): Wait {
  const known = { pool, ...facts };
  return { code, meaning: meaning ?? UNKNOWN, since, source: "launcher", facts: known, next_try };
}

/** The last thing noted of a request, when that is why it waits; undefined when something happened to it since. */
export function notedWait({ events }: ReportedHistory): Wait | undefined {
  const last = events.findLast(({ event }) => event.startsWith("request."));
  if (last?.event !== "request.waits") return undefined;
  const { code, facts, since, nextTry } = last.facts;
  const noted = {
    code: String(code),
    facts: typeof facts === "object" && facts !== null ? (facts as Wait["facts"]) : {},
    since: typeof since === "number" ? since : Date.parse(last.at ?? ""),
    nextTry: typeof nextTry === "number" ? nextTry : null,
  };
  return waitOf(noted, "journal");
}

/** A reason with its text; `source` is a launcher unless the caller says otherwise. */
function waitOf(
  { code, facts, since, nextTry }: NonNullable<Testimony["wait"]>,
  source: Wait["source"] = "launcher",
): Wait {
  const meaning = verdictMeaning(code, facts) ?? UNKNOWN;
  return { code, meaning, since: iso(since), source, facts: timed(facts), next_try: iso(nextTry) };
}
