import { beforeEffect, fenceOf } from "@nodeyard/coordination";
import { DriverError, type LabelConfig, type LabelReuse } from "@nodeyard/driver";
import {
  type NodeRecord,
  offeringTypeOf,
  type ReuseNote,
  remarkPath,
  reuseOf,
  userOf,
  withoutUser,
  withReuse,
} from "@nodeyard/model";
import { abortable, deadline, messageOf } from "@nodeyard/runtime";
import { treeSeconds } from "@nodeyard/tree";
import { poolKey } from "@nodeyard/view";
import type { ServingPool } from "../handles.ts";
import type { HeldNode } from "../held-records.ts";
import { foreignPools } from "../providers/foreign.ts";
import { labelBoughtAs } from "../providers/offerings.ts";
import { scanned } from "./attempt.ts";
import { bootImage } from "./boot-image.ts";
import { countCost } from "./delete-node.ts";
import type { LaunchHandles } from "./handles.ts";
import { lockNode } from "./node-lock.ts";
import { StepTrace } from "./step-trace.ts";

/** Nothing here may be used again. */
class Unusable extends DriverError {
  constructor(why: string) {
    super("fatal", why);
  }
}

/**
 * Checks a node that was given back, and frees it for its next use if it passes. While that is under way its record is `building` and names
 * nobody: whoever finds it without a lock deletes it. "busy": another client has its lock, or it is not known what became of the node; to be
 * decided again. Never rejects.
 */
export async function checkNode(
  context: LaunchHandles,
  id: string,
  version: number,
  signal: AbortSignal,
): Promise<"done" | "busy"> {
  let node: HeldNode | undefined;
  try {
    const locked = await lockNode(context, id);
    if (locked === "busy") return "busy";
    if (locked === "gone") return "done";
    node = locked;
    const { record } = node;
    if (record.state !== "used" || node.version !== version) await node.held.release();
    else await judge(context, node, signal);
    return "done";
  } catch {
    // Nothing is known of the machine, and its record says so; a record that could not be written is still `used`.
    await node?.held.release().catch(() => {});
    return "busy";
  }
}

/** Ends with the node unlocked: `ready` or `deleting`. Rejects when its lock is lost or `signal` aborts. */
async function judge(context: LaunchHandles, node: HeldNode, signal: AbortSignal): Promise<void> {
  const { clock, counters, journal } = context;
  const { id, record } = node;
  const began = clock.monotonic();
  const provider = record.provider ?? "";
  const ended = (result: "passed" | "failed") => {
    counters.time("launcher.check", clock.monotonic() - began, { provider, result });
    return { ms: Math.round(clock.monotonic() - began) };
  };
  const note = reuseOf(record);
  try {
    const pool = context.pools.get(poolKey(record.provider, record.pool));
    const label = pool && labelOf(pool, record);
    if (pool === undefined || label?.reuse === undefined || note === undefined)
      throw new Unusable("its label does not say any more that it is used again");
    const only = label.reuse.forAll ? null : (userOf(record) ?? null);
    if (only === null && !label.reuse.forAll) throw new Unusable("it is not known who had it");
    const counted = treeSeconds(context);
    const next: ReuseNote = { ...note, times: note.times + 1, only, checking: true, counted };
    await node.write({ ...withoutUser, state: "building", driverData: withReuse(record.driverData, next) });
    countCost(context, record);
    const work = assertGood(context, { pool, label, node, reuse: label.reuse }, signal);
    // A provider that is replaced is closed when this has ended.
    const noted = work.then(
      () => {},
      () => {},
    );
    pool.open.work.add(noted);
    void noted.finally(() => pool.open.work.delete(noted));
    await work;
    const driverData = withReuse(node.record.driverData, { ...next, checking: false });
    await node.writeAndRelease({ state: "ready", driverData });
    const facts = { use: next.times + 1, ...ended("passed") };
    journal.write({ event: "node.checked", node: id, facts, record: node.record });
  } catch (thrown) {
    const error = fenceOf(thrown);
    if (!(error instanceof DriverError) || signal.aborted) throw error;
    const facts = { why: messageOf(error), ...ended("failed") };
    journal.write({ event: "node.check-failed", node: id, facts, record: node.record });
    context.fence.demand(node.held);
    await node.writeAndRelease({ state: "deleting" });
  }
}

interface Checked {
  readonly pool: ServingPool;
  readonly label: LabelConfig;
  readonly node: HeldNode;
  readonly reuse: LabelReuse;
}

/** Rejects with a DriverError that says why the node must not be used again. */
async function assertGood(
  context: LaunchHandles,
  { pool, label, node, reuse }: Checked,
  signal: AbortSignal,
): Promise<void> {
  const { id, record } = node;
  const trace = new StepTrace(context, { node: id, of: "check", attempt: 1 }, record);
  try {
    trace.begin("check", reuse.checkMs);
    await assertAlone(context, pool, reuse);
    assertNewest(context, pool, label, node);
    // Such as that the cloud takes the machine back.
    if (context.view.own.has(remarkPath(id))) throw new Unusable("its driver remarked something on it");
    await runCheck(context, node, reuse, signal);
    const limitMs = pool.open.config.bootTimeoutMs;
    const late = () => new DriverError("timeout", `it did not answer within ${limitMs} ms`);
    using limit = deadline(context.clock, limitMs, late, signal);
    const { externalId, interfaceIp, connectionPort, connectionType } = record;
    const port = typeof connectionPort === "number" ? connectionPort : label.connection.port;
    const connection = { ...label.connection, type: connectionType ?? label.connection.type, port };
    const machine = { externalId: externalId ?? "", interfaceIp, connection };
    const hostKeys = await scanned(context, { pool, label }, machine, trace, limit.signal);
    const before = new Set(record.hostKeys);
    // Where the driver told the keys, or none are checked, there are none to compare.
    const isSame = before.size === hostKeys.length && hostKeys.every((key) => before.has(key));
    if (hostKeys.length > 0 && before.size > 0 && !isSame)
      throw new Unusable("its host keys are not those with which it was launched");
    trace.end();
  } catch (error) {
    trace.end(messageOf(fenceOf(error)));
    throw error;
  }
}

/** Launchers of another kind would give the node to everybody. */
async function assertAlone(context: LaunchHandles, { open }: ServingPool, reuse: LabelReuse): Promise<void> {
  if (reuse.forAll) return;
  const foreign = await foreignPools(context, open.config.name);
  if (foreign.length > 0)
    throw new Unusable(`a launcher that is not Nodeyard's serves its provider, too: ${foreign.join(", ")}`);
}

/** A new node would boot another image. */
function assertNewest(
  context: LaunchHandles,
  pool: ServingPool,
  label: LabelConfig,
  { id, record }: HeldNode,
): void {
  let newest: string | null | undefined;
  try {
    // As a second attempt, which boots no build that is on trial.
    newest = bootImage(context, pool, label, { nodeId: id, attempt: 2 }).patch.imageId;
  } catch (error) {
    throw new Unusable(messageOf(error));
  }
  if (newest !== record.imageId) throw new Unusable("there is a newer build of its image");
}

async function runCheck(
  context: LaunchHandles,
  { record, held }: HeldNode,
  { check, checkMs }: LabelReuse,
  signal: AbortSignal,
): Promise<void> {
  if (context.check === undefined) throw new Unusable("this launcher runs no programs");
  await beforeEffect(context, held);
  const late = () => new DriverError("timeout", `its check did not end within ${checkMs} ms`);
  using limit = deadline(context.clock, checkMs, late, signal);
  const why = await abortable(context.check({ command: check, node: record }, limit.signal), limit.signal);
  limit.signal.throwIfAborted();
  if (why !== undefined) throw new Unusable(why);
}

/** The label as the node was bought, of the pool as it is configured now. */
function labelOf({ open, name }: ServingPool, record: NodeRecord): LabelConfig | undefined {
  const label = open.config.pools.find((one) => one.name === name)?.labels.get(record.type[0] ?? "");
  return label && labelBoughtAs(open, label, offeringTypeOf(record), record.az);
}
