import { beforeEffect, fenceOf } from "@nodeyard/coordination";
import { DriverError, runSteps } from "@nodeyard/driver";
import { costOf, type NodePatch, priceOf, suspendedPatch } from "@nodeyard/model";
import { deadline, messageOf } from "@nodeyard/runtime";
import { FenceLost } from "@nodeyard/tree";
import type { ServingPool } from "../handles.ts";
import type { HeldNode, HeldRequest } from "../held-records.ts";
import { attemptLaunch } from "./attempt.ts";
import type { NodeHandles, RequestHandles } from "./handles.ts";
import { lockNode } from "./node-lock.ts";
import { StepTrace } from "./step-trace.ts";
import { tagOf } from "./tag.ts";

/** For the whole of a suspension, milliseconds. */
const SUSPEND_MS = 900_000;

/**
 * Suspends a free node, so that a request may have it once it is woken. While that is under way its record is `building`: whoever finds it without
 * a lock deletes it, since the machine may be in any state. "refused": it could not be suspended, and goes. "busy": another client has its lock.
 * Never rejects.
 */
export async function suspendNode(
  context: NodeHandles,
  id: string,
  version: number,
  signal: AbortSignal,
): Promise<"done" | "refused" | "busy"> {
  let node: HeldNode | undefined;
  try {
    const locked = await lockNode(context, id);
    if (locked === "busy") return "busy";
    if (locked === "gone") return "done";
    node = locked;
    const { record } = node;
    const open = context.openFor(record);
    const isAsDecided = record.state === "ready" && record.allocatedTo === null && node.version === version;
    const { suspension } = open?.provider.offers ?? {};
    if (open === undefined || suspension === undefined || !isAsDecided) {
      await node.held.release();
      return "done";
    }
    const began = context.clock.monotonic();
    await node.write({ state: "building" });
    const late = () => new DriverError("timeout", `node ${id}: not suspended within ${SUSPEND_MS} ms`);
    using limit = deadline(context.clock, SUSPEND_MS, late, signal);
    const trace = new StepTrace(context, { node: id, of: "suspend", attempt: 1 }, record);
    const { held } = node;
    const work = runSteps((step) => suspension.suspend(tagOf(context, { id, record }), step), {
      clock: context.clock,
      before: () => beforeEffect(context, held),
      signal: limit.signal,
      externalId: record.externalId,
      save: async () => {},
      onStep: ({ step, deadlineMs }) => trace.begin(step, deadlineMs),
    });
    // A provider that is replaced is closed when this has ended.
    const noted = work.catch(() => {}).finally(() => open.work.delete(noted));
    open.work.add(noted);
    try {
      await work;
    } finally {
      trace.end();
    }
    await node.writeAndRelease(suspendedPatch);
    const facts = { ms: Math.round(context.clock.monotonic() - began) };
    context.journal.write({ event: "node.suspended", node: id, facts, record: node.record });
    return "done";
  } catch (thrown) {
    const error = fenceOf(thrown);
    // Nothing is known of the machine, and its record says so.
    await node?.held.release().catch(() => {});
    if (!(error instanceof DriverError) || signal.aborted) return "done";
    const facts = { host: null, why: `it was not suspended: ${messageOf(error)}` };
    context.journal.write({ event: "node.dead", node: id, facts, ...(node && { record: node.record }) });
    return "refused";
  }
}

/**
 * Wakes a suspended node, which we have locked, for its user: a launch of its own kind, with the steps of the driver and the scan of its host keys.
 * Resolves with undefined, or with why it must not be delivered. Rejects when `signal` aborts or the lock is lost; the record is `building` then,
 * and the machine goes with it.
 */
export async function wakeNode(
  context: RequestHandles,
  pool: ServingPool,
  request: HeldRequest,
  node: HeldNode,
  user: NodePatch,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { clock, counters, journal } = context;
  const began = clock.monotonic();
  const name = node.record.type[0] ?? "";
  const label = pool.open.config.pools.find((one) => one.name === pool.name)?.labels.get(name);
  await node.write({ ...user, state: "building", holdJob: null, holdExpiration: null, comment: null });
  const ended = (result: string) =>
    counters.time("launcher.wake", clock.monotonic() - began, { provider: pool.open.config.name, result });
  if (label === undefined || pool.open.provider.offers?.suspension === undefined)
    return `provider ${pool.open.config.name} cannot wake it`;
  try {
    const launch = { pool, request, node, label, wakes: true };
    const up = await attemptLaunch(context, launch, 1, signal);
    await node.write({ ...up, state: "ready" });
    ended("ready");
    const [ms, cost] = [Math.round(clock.monotonic() - began), costOf(priceOf(node.record))];
    const facts = { request: request.id, ms, cost };
    journal.write({ event: "node.woken", node: node.id, facts, record: node.record });
    return undefined;
  } catch (thrown) {
    const error = fenceOf(thrown);
    if (error instanceof FenceLost || signal.aborted) throw error;
    ended(error instanceof DriverError ? error.kind : "unexpected");
    return messageOf(error);
  }
}
