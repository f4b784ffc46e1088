import { type About, askMembers, type MemberAnswers } from "../../asking/index.ts";
import type { History, PastEvent, Subject } from "../../telemetry/index.ts";
import type { OperationHandles } from "../handles.ts";
import type { PoolLine, ReportedEvent, ReportedHistory, Story } from "./story.ts";

/** Looks a thing up in the journal of this machine. */
export type ReadHistory = (subject: Subject) => History;

/** What live members say, together with the journal of this machine, whose launcher may be gone. */
export interface MemberReplies {
  readonly asked: MemberAnswers;
  readonly history: ReportedHistory;
}

export type QueryMembers = (about: About) => Promise<MemberReplies>;

/** How long members have to answer, milliseconds: a person waits. */
const WITHIN_MS = 3_000;

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

/** One history of many: each event once, by the writers' clocks. */
export function merge({ answers }: MemberAnswers, local: History): ReportedHistory {
  const told = new Map<string, ReportedEvent>();
  const add = (event: PastEvent, by: string | null) => {
    const { at, event: name, request, node, facts } = event;
    const key = JSON.stringify([at, name, request, node, facts]);
    if (!told.has(key)) told.set(key, { at, event: name, request, node, facts, by });
  };
  for (const { hostname, testimony } of answers) for (const event of testimony.events) add(event, hostname);
  for (const event of local.events) add(event, null);
  const problems = answers.map(({ testimony }) => testimony.problem);
  const known = local.problem === null || problems.includes(null);
  return {
    events: [...told.values()].sort((a, b) => a.at - b.at),
    problem: known ? null : (problems[0] ?? local.problem),
  };
}

/** What is the same in every story. */
export function replyParts({
  asked,
  history,
}: MemberReplies): Pick<Story, "pools" | "estimate" | "history" | "asked"> {
  const pools = asked.answers.flatMap(({ member, hostname, testimony }) =>
    testimony.pools.map((standing): PoolLine => ({ ...standing, member, host: hostname })),
  );
  return { pools, estimate: soonest(pools), history, asked };
}

function soonest(pools: readonly PoolLine[]): Story["estimate"] {
  let best: Story["estimate"] = null;
  // Once it is being made in one pool, what others would take does not matter.
  const serving = pools.filter(({ outlook }) => outlook === "serves");
  for (const { pool, estimate } of serving.length > 0 ? serving : pools)
    if (estimate !== null && (best === null || estimate.fromMs < best.fromMs)) best = { ...estimate, pool };
  return best;
}
