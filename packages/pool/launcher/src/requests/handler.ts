import {
  clientOf,
  MIN_READY,
  metastaticProviderOf,
  type NodePatch,
  type RequestRecord,
} from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import type { Action } from "@nodeyard/scheduler";
import type { LiveTask } from "@nodeyard/telemetry";
import { FenceLost, TreeError, treeNow } from "@nodeyard/tree";
import type { ServingPool } from "../handles.ts";
import type { HeldNode, HeldRequest } from "../held-records.ts";
import { shiftsOf } from "../limits/holdings.ts";
import { LimitReached } from "../limits/ledger-cache.ts";
import { ImageGone } from "../nodes/boot-image.ts";
import { claimNode } from "../nodes/claim.ts";
import { createNode } from "../nodes/create-node.ts";
import type { RequestHandles } from "../nodes/handles.ts";
import { launchNode } from "../nodes/launch.ts";
import { labelBoughtAs } from "../providers/offerings.ts";
import { lockAndAccept, lockRequest } from "./accept.ts";
import { decline, everyoneDeclined, fulfil, type Handled, releaseNodes } from "./finish.ts";

/** How one node of a nodeset ended. "taken": there is no node, and another plan may find one. */
type NodeOutcome = {
  readonly node: HeldNode | undefined;
  readonly result: "ready" | "failed" | "aborted" | "taken";
  /** What went wrong. */
  readonly why?: string;
};

type NodesetPlan = Pick<Extract<Action, { type: "accept" }>, "nodes" | "zone">;

/** Receives the progress of one acceptance. */
interface Progress {
  readonly live: LiveTask;
  /** The last of its launches has begun. */
  readonly started: () => void;
}

/**
 * Carries one acceptance out: lock, claim and launch all nodes at once, then deliver, decline or put back. Called by Tasks for each
 * action `accept`. When `signal` aborts, launches end, and the request is put back where the session still lives. Rejects when the
 * request could not be locked or accepted; from then on only for faults of the program.
 */
export async function handleRequest(
  context: RequestHandles,
  pool: ServingPool,
  id: string,
  plan: NodesetPlan,
  signal: AbortSignal,
  { live, started }: Progress,
): Promise<Handled> {
  live.at("locks and accepts it");
  const request = await lockAndAccept(context, pool, id);
  if (request === "gone") context.handOversFailed.delete(id);
  if (typeof request === "string") return request === "gone" ? "vanished" : request;
  live.holds(request.held.contender);
  live.at(`obtains ${plan.nodes.length} nodes`);
  const labels = [...new Set(request.record.nodeTypes)];
  const accepted = { ...placeOf(pool), labels, nodes: plan.nodes.length, ...askedBy(request.record) };
  context.journal.write({ event: "request.accepted", request: id, facts: accepted });
  const { outcomes, delivered } = await obtainNodes(context, pool, request, plan, signal, { live, started });
  live.at("concludes");
  const nodes = outcomes.map((outcome) => outcome.node).filter((node) => node !== undefined);
  try {
    // Failed handovers are counted over several plans of one request, so the count ends with the request and not with the plan.
    const handled = await conclude(context, pool, request, outcomes, nodes, delivered);
    if (handled !== "replan") context.handOversFailed.delete(id);
    return handled;
  } catch (error) {
    context.handOversFailed.delete(id);
    if (!(error instanceof FenceLost) && !(error instanceof TreeError)) throw error;
    await releaseNodes(context, nodes);
    await request.held.release().catch(() => {});
    // Deleted while it was served: the requestor does not want it any more, and that is no lost race.
    if (!context.view.requests.byId.has(id)) return "vanished";
    context.counters.add("launcher.fence_lost", 1, { kind: "request" });
    context.journal.write({ event: "request.lost", request: id, facts: { error: messageOf(error) } });
    return "lost";
  }
}

/**
 * Claims or launches all nodes of the plan in parallel. Resolves when each has ended, so a failure does not leave a launch running.
 * `delivered`: the last node became ready in the commit that fulfilled the request.
 */
async function obtainNodes(
  context: RequestHandles,
  pool: ServingPool,
  request: HeldRequest,
  { nodes, zone }: NodesetPlan,
  signal: AbortSignal,
  progress: Progress,
): Promise<{ readonly outcomes: readonly NodeOutcome[]; readonly delivered: boolean }> {
  // Nodes that begin no launch count down, too: reused ones, and those that fail before.
  let starting = nodes.length;
  const started = () => {
    starting--;
    if (starting === 0) progress.started();
  };
  /** Nodes of which it is open whether they will be ready. */
  const open = new Set(nodes.keys());
  let delivered = false;
  const ends: readonly Promise<NodeOutcome>[] = nodes.map(async (planned, index): Promise<NodeOutcome> => {
    let node: HeldNode | undefined;
    let begun = false;
    try {
      if ("reuse" in planned) {
        node = await claimNode(context, pool, request, planned.reuse, signal);
        if (node !== undefined) progress.live.holds(node.held.contender);
        if (node !== undefined) return { node, result: "ready" };
        return { node, ...whyTaken(context, pool, request.id) };
      }
      const { launch: need, type } = planned;
      const label = pool.open.config.pools
        .find((candidate) => candidate.name === pool.name)
        ?.labels.get(planned.label);
      const bought = label && labelBoughtAs(pool.open, label, type, zone);
      // The configuration no longer has the label, or its offering. The next plan says what to do.
      if (bought === undefined) return { node, result: "taken" };
      node = await createNode(context, pool, request, bought, { need, zone, type });
      begun = true;
      progress.live.holds(node.held.contender);
      started();
      const held = node;
      const write = async (ready: NodePatch) => {
        const isLast = open.delete(index) && open.size === 0;
        delivered = isLast && (await deliver(request, { node: held, ready }, ends, index));
        if (!delivered) await held.write(ready);
      };
      const ended = await launchNode(context, pool, request, node, label!, planned, write, signal);
      if (ended.result !== "ready") {
        const { id, record } = node;
        const facts = { state: ended.result, why: ended.why };
        context.journal.write({ event: "node.failed", node: id, facts, record });
      }
      return { node, ...ended };
    } catch (error) {
      // An abort is the end of the session or of the launcher, and no failure of the node.
      const replan = signal.aborted || isReplannable(error);
      noteFailure(context, request.id, node?.id, error, replan);
      return { node, result: replan ? "taken" : "failed", why: messageOf(error) };
    } finally {
      open.delete(index);
      if (!begun) started();
    }
  });
  return { outcomes: await Promise.all(ends), delivered };
}

/**
 * Fulfils a request with the commit that makes its last node ready, if all others are. False: nothing was written, and the node becomes
 * ready by itself, which it also does for a request that is gone.
 */
async function deliver(
  request: HeldRequest,
  last: { readonly node: HeldNode; readonly ready: NodePatch },
  ends: readonly Promise<NodeOutcome>[],
  index: number,
): Promise<boolean> {
  // They have nothing left to do but writes.
  const others = await Promise.all(ends.filter((_, other) => other !== index));
  const nodes = others.map(({ node }) => node).filter((node) => node !== undefined);
  nodes.splice(index, 0, last.node);
  if (others.some(({ result }) => result !== "ready")) return false;
  // Commits with ledgers are joined, and one commit never contains two requests.
  if (shiftsOf(last.node.record, { ...last.node.record, ...last.ready }).length > 0) return false;
  try {
    await fulfil(request, nodes, last);
    return true;
  } catch (error) {
    if (error instanceof FenceLost || error instanceof TreeError) return false;
    throw error;
  }
}

/** A node that was gone is planned again. After as many unfit nodes as launches may fail, the request fails. */
function whyTaken(
  context: RequestHandles,
  { open }: ServingPool,
  request: string,
): { readonly result: "taken" } | { readonly result: "failed"; readonly why: string } {
  const { times = 0, why = "" } = context.handOversFailed.get(request) ?? {};
  return times < open.config.launchAttempts ? { result: "taken" } : { result: "failed", why };
}

/**
 * Delivers the nodeset when all nodes are ready; otherwise releases those that are, and declines or plans again. Rejects with
 * FenceLost or a TreeError when the last commit is refused or not answered.
 */
async function conclude(
  context: RequestHandles,
  pool: ServingPool,
  request: HeldRequest,
  outcomes: readonly NodeOutcome[],
  nodes: readonly HeldNode[],
  delivered: boolean,
): Promise<Handled> {
  if (delivered || outcomes.every((outcome) => outcome.result === "ready")) {
    if (!delivered) await fulfil(request, nodes);
    const { createdTime } = request.record;
    // A requestor may leave out the time of its request.
    const ms = createdTime === null ? null : Math.max(0, Math.round(treeNow(context) - createdTime * 1000));
    if (ms !== null) context.counters.time("launcher.request", ms, placeOf(pool));
    const facts = { ...placeOf(pool), nodes: nodes.map(({ id }) => id), ms };
    context.journal.write({ event: "request.fulfilled", request: request.id, facts });
    return "fulfilled";
  }
  // The nodes that did become ready stay in the pool, free for any request.
  await releaseNodes(context, nodes);
  const failed = outcomes.filter((outcome) => outcome.result === "failed");
  if (failed.length > 0) {
    // Ten nodes that fail in the same way are one reason.
    const reasons = [...new Set(failed.map(({ why }) => why ?? "cannot make a node"))];
    const state = await decline(context, request, [pool.id]);
    const facts = { pools: [pool.id], reason: reasons.join("; "), state, ...askedBy(request.record) };
    context.journal.write({ event: "request.declined", request: request.id, facts });
    return state === "failed" ? "failed" : "declined";
  }
  // Without a decline. When it is refused, the request stays `pending`, and any launcher resets it once it is unlocked.
  await request.writeAndRelease({ state: "requested" });
  const why = [...new Set(outcomes.map((outcome) => outcome.why ?? outcome.result))].join("; ");
  context.journal.write({ event: "request.put-back", request: request.id, facts: { why } });
  return "replan";
}

/** The facts of a request that `nodeyard plan` replays as demand. Requests of launchers are left out: a planned launcher makes its own. */
function askedBy(record: RequestRecord): object {
  const { nodeTypes, createdTime, tenantName, relativePriority, requestor, requestorData } = record;
  if (requestor === MIN_READY || metastaticProviderOf(requestor) !== undefined) return {};
  const tenant = tenantName === null ? {} : { tenant: tenantName };
  const client = clientOf(requestor, requestorData);
  const relative = relativePriority === 0 ? {} : { relative_priority: relativePriority };
  return {
    asked: {
      labels: nodeTypes,
      created: createdTime,
      ...tenant,
      ...(client !== null && { client }),
      ...relative,
    },
  };
}

/** Provider and pool, as labels of metrics and facts of events. */
function placeOf({ open, name }: ServingPool) {
  return { provider: open.config.name, pool: name };
}

/** Whether an error says only that the plan is out of date, so that another plan may succeed. */
function isReplannable(error: unknown): boolean {
  return (
    error instanceof FenceLost ||
    // A record that is too long for the tree is so in every plan.
    (error instanceof TreeError && error.code !== "tree.too_large") ||
    error instanceof LimitReached ||
    error instanceof ImageGone
  );
}

/** Counts and reports that a node of a request could not be made. `lost`: another plan may succeed, so the failure is not an unexpected one. */
function noteFailure(
  context: RequestHandles,
  request: string,
  node: string | undefined,
  error: unknown,
  lost: boolean,
): void {
  if (lost) context.counters.add("launcher.fence_lost", 1, { kind: "node" });
  else context.counters.add("launcher.unexpected", 1, { place: "handler" });
  const facts = { request, error: messageOf(error) };
  context.journal.write({ event: "node.given-up", node, facts });
}

/**
 * Declines for pools of ours that cannot serve a request; with none, only asks whether all have declined by now. "busy" with no pools:
 * another pool has registered since, and may serve it.
 */
export async function handleDecline(
  context: RequestHandles,
  id: string,
  pools: readonly string[],
  reason: string,
): Promise<Handled> {
  const request = await lockRequest(context, id);
  if (typeof request === "string") return request === "gone" ? "vanished" : request;
  const { record } = request;
  if (
    record.state !== "requested" ||
    (pools.length > 0 && pools.every((pool) => record.declinedBy.includes(pool)))
  ) {
    await request.held.release();
    return "changed";
  }
  if (pools.length === 0 && !everyoneDeclined(context, record.declinedBy)) {
    await request.held.release();
    return "busy";
  }
  const state = await decline(context, request, pools).catch(async (error: unknown) => {
    await request.held.release();
    throw error;
  });
  const facts = { pools, reason, state, ...askedBy(record) };
  context.journal.write({ event: "request.declined", request: id, facts });
  return state === "failed" ? "failed" : "declined";
}
