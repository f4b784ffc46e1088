import { compareRequests, decodeRequest, leaseIdOf, paths, type RequestRecord } from "@nodeyard/model";
import { type VerdictCode, verdictCodes } from "@nodeyard/scheduler";
import { type Tree, treeNow } from "@nodeyard/tree";
import type { OperationHandles } from "../handles.ts";
import { readRequest } from "../listing.ts";
import { readStandings } from "../standings.ts";
import {
  fromTree,
  goneStory,
  liveWait,
  type MemberReplies,
  notedWait,
  type QueryMembers,
  replyParts,
} from "./member-replies.ts";
import { nextSteps } from "./next-steps.ts";
import { isoOf } from "./reason.ts";
import { backingRequests } from "./slot-facts.ts";
import { withStanding } from "./standing-facts.ts";
import { lifeOf } from "./steps.ts";
import type { ReportedHistory as History, Story, Wait } from "./story.ts";
import {
  costFacts,
  lockHolder,
  nodeFacts,
  nodesOf,
  type RegisteredPool,
  readEach,
  registeredPools,
} from "./tree-facts.ts";

/**
 * The explanation of a request; undefined when neither the tree nor a journal knows the id. Rejects with RecordError for a record
 * that cannot be read.
 */
export async function requestStory(
  handles: OperationHandles,
  id: string,
  query: QueryMembers,
): Promise<Story | undefined> {
  const { tree } = handles;
  const [record, pools, replies, standings] = await Promise.all([
    readRequest(handles, id),
    registeredPools(tree),
    query({ request: id }),
    readStandings(handles),
  ]);
  const { history } = replies;
  if (record === undefined) return endedStory(id, replies);
  const open = record.state === "requested" || record.state === "pending";
  const [holder, nodes] = await Promise.all([
    lockHolder(tree, paths.requestLock(id)),
    open ? nodesOf(tree, id) : [],
  ]);
  const capable = pools.filter((pool) => mayServe(pool, record));
  // A node that waits for a slot waits for another request, which the reader should look at.
  const behind = await backingRequests(handles, open ? nodes : []);
  const waits_for = open ? await waitOf(tree, record, { pools, capable, holder, replies }) : null;
  return {
    kind: "request",
    id,
    state: record.state,
    since: isoOf(record.stateTime),
    about: {
      labels: record.nodeTypes,
      requestor: record.requestor,
      lease: leaseIdOf(record.requestor) ?? null,
      provider: record.provider,
      declined_by: record.declinedBy,
      pools_that_may: capable.map(poolId),
      handled_by: holder,
      nodes: open ? nodes.map(nodeFacts) : record.nodes,
      ...costFacts(nodes, treeNow(handles)),
      ...(behind.length === 0 ? {} : { waits_for_requests: behind }),
    },
    ...withStanding(
      { waits_for, next: waits_for === null ? afterwards(record, history) : nextOf(waits_for, behind) },
      record.nodeTypes,
      standings,
    ),
    ...replyParts(replies),
    steps: lifeOf(
      [],
      replies.asked.answers.flatMap(({ testimony }) => testimony.underWay),
    ),
  };
}

/**
 * What was read about the request. `capable`: registered pools that offer all labels and have not declined; `holder`: of its
 * lock, by name.
 */
interface Known {
  readonly pools: readonly RegisteredPool[];
  readonly capable: readonly RegisteredPool[];
  readonly holder: string | null;
  readonly replies: MemberReplies;
}

/**
 * Why the request waits. A launcher's own reason is best; then what the records prove; then the last reason in a journal, which may be out of
 * date; then what follows from the registered pools and the other requests.
 */
async function waitOf(tree: Tree, record: RequestRecord, known: Known): Promise<Wait> {
  const { pools, capable, holder, replies } = known;
  const because = (code: VerdictCode, facts: Wait["facts"]) =>
    fromTree(code, verdictCodes[code], facts, isoOf(record.stateTime));
  const live = liveWait(replies, replyParts(replies).pools);
  if (live !== undefined) return live;
  if (record.state === "pending")
    return because(holder === null ? "pending.elsewhere" : "handling", { handler: holder });
  // The registry shows only current launchers; verdicts of launchers that have gone are lost with them.
  if (pools.length === 0) return because("pools.none", {});
  const noted = notedWait(replies.history);
  if (noted !== undefined) return noted;
  if (capable.length === 0) {
    const undecided = pools.map(poolId).filter((pool) => !record.declinedBy.includes(pool));
    return because("declined.here", { undecided });
  }
  // Two codes that only say where it stands in line: no launcher has given a reason yet.
  const [first, ...others] = await requestsAhead(tree, record, capable);
  if (first !== undefined)
    return because("queue.behind", { ahead: 1 + others.length, head: first, pools: capable.map(poolId) });
  return because("queue.next", { pools: capable.map(poolId) });
}

/** Ids of requests that are ahead in the order and that one of the capable pools could serve, the first first. */
async function requestsAhead(
  tree: Tree,
  record: RequestRecord,
  capable: readonly RegisteredPool[],
): Promise<readonly string[]> {
  const others = await readEach(tree, paths.requests, decodeRequest);
  return others
    .filter((other) => other.state === "requested" && compareRequests(other, record) < 0)
    .filter((other) => capable.some((pool) => mayServe(pool, other)))
    .sort(compareRequests)
    .map(({ id }) => id);
}

/** Whether a pool offers all labels and has not declined. A request is served by one pool as a whole. */
function mayServe(pool: RegisteredPool, { nodeTypes, declinedBy }: RequestRecord): boolean {
  return !declinedBy.includes(pool.id) && nodeTypes.every((label) => pool.supportedLabels.includes(label));
}

/** The next step of a subject that waits for this reason; `behind`: requests for backing nodes that it waits for. */
export function nextOf({ code }: Wait, behind: readonly string[] = []): string {
  if (behind.length > 0)
    return `A backing node was requested for its slots. To see what that waits for: nodeyard explain ${behind[0]}`;
  return Object.hasOwn(nextSteps, code) ? nextSteps[code as VerdictCode] : "A launcher reconsiders it.";
}

/** What happens next to a request that is answered. */
function afterwards({ state, requestor, declinedBy }: RequestRecord, history: History): string {
  const who = leaseIdOf(requestor) === undefined ? (requestor ?? "Its requestor") : "A launcher";
  if (state === "fulfilled")
    return leaseIdOf(requestor) === undefined
      ? `${who} locks the nodes and deletes the request.`
      : "A launcher holds the nodes for the lease and deletes the request.";
  const reasons = reasonsIn(history);
  const why = reasons === "" ? `declined by ${declinedBy.join(", ") || "every pool"}` : reasons;
  return `Nothing: it has failed (${why}). ${who} deletes it; request again when the cause is fixed.`;
}

/** The explanation of a request that is gone, from the journals alone. */
function endedStory(id: string, replies: MemberReplies): Story | undefined {
  const { history } = replies;
  if (history.events.length === 0) return undefined;
  const last = history.events.findLast(({ event }) => event !== "request.waits")?.event;
  const failure = failureOf(history);
  const lease = history.events.find(({ event }) => event.startsWith("lease."))?.facts.lease ?? null;
  const ending =
    last === "request.fulfilled" || last === "lease.granted"
      ? "Its nodes were handed over, and the request was deleted."
      : failure !== null
        ? `It failed (${failure}), and the request was deleted.`
        : "The request was deleted before it was fulfilled: its requestor withdrew it.";
  return goneStory({ kind: "request", id, about: { lease }, next: ending }, replies);
}

/** Why the request of this history failed; null when it did not fail. */
export function failureOf(history: History): string | null {
  const declined = history.events.findLast(({ event }) => event === "request.declined");
  return declined?.facts.state === "failed" ? reasonsIn(history) || "every pool declined it" : null;
}

/** The reasons of declines and failed launches, each once, in words. */
function reasonsIn({ events }: History): string {
  const reasons = events
    .filter(({ event }) => event === "request.declined" || event === "node.launch-failed")
    .map(({ facts }) => String(facts.reason ?? facts.error ?? ""));
  return [...new Set(reasons)].filter((reason) => reason !== "").join("; ");
}

function poolId({ id }: RegisteredPool): string {
  return id;
}
