import { DriverError } from "@nodeyard/driver";
import { isSuspended, leaseData, reuseOf, withGivenAt } from "@nodeyard/model";
import { deadline, messageOf } from "@nodeyard/runtime";
import { mayHave } from "@nodeyard/scheduler";
import type { ServingPool } from "../handles.ts";
import type { HeldNode, HeldRequest } from "../held-records.ts";
import { probeInTime } from "../providers/probe.ts";
import type { RequestHandles } from "./handles.ts";
import { lockNode } from "./node-lock.ts";
import { wakeNode } from "./suspend.ts";
import { tagOf } from "./tag.ts";

/** The most requests whose failed handovers are counted; entries of requests that another launcher served are not removed otherwise. */
const REMEMBERED = 10_000;

/**
 * Locks a ready node and gives it to a request. Returns undefined when the node is taken, has changed or does not answer; the request
 * is planned again then. A static node that does not answer has been sent to its deletion when this returns. Rejects only when the
 * tree cannot be asked for the lock.
 */
export async function claimNode(
  context: RequestHandles,
  pool: ServingPool,
  request: HeldRequest,
  id: string,
  signal: AbortSignal,
): Promise<HeldNode | undefined> {
  const entry = context.view.nodes.byId.get(id);
  if (entry === undefined || !isFree(entry.record)) return undefined;
  // Judged once more under the lock: the view may be behind, and another launcher may have had the node between plan and lock.
  const node = await lockNode(context, id);
  if (typeof node === "string") return undefined;
  try {
    if (!isFree(node.record) || !mayHave(node.record, request.record, isForAll(pool, node))) {
      await node.held.release();
      return undefined;
    }
    // Before the node is allocated: a dead static host needs no write that takes it back.
    if (!(await isAlive(context, pool, node, signal))) return undefined;
    const { record } = request;
    // Only now may the machine change for its user, since a driver that prepares a machine asks whose node it is.
    const user = {
      ...{ allocatedTo: request.id, tenantName: record.tenantName, requestor: record.requestor },
      userData: leaseData(record),
      driverData: withGivenAt(node.record, context.ages.now()),
    };
    if (isSuspended(node.record)) {
      const why = await wakeNode(context, pool, request, node, user, signal);
      if (why !== undefined) return void (await takeOutDead(context, node, why));
    } else await node.write(user);
    if (!(await isReady(context, pool, node, request.id, signal))) return undefined;
    const { times = 0 } = reuseOf(node.record) ?? {};
    const facts = { request: request.id, ...(times > 0 && { use: times + 1 }) };
    context.journal.write({ event: "node.claimed", node: id, facts, record: node.record });
    if (times > 0) {
      const [label = ""] = node.record.type;
      context.counters.add("launcher.launches_saved", 1, { provider: pool.open.config.name, label });
    }
    return node;
  } catch (error) {
    context.log.info({ node: id, request: request.id, error: messageOf(error) }, "cannot claim a ready node");
    await node.held.release();
    return undefined;
  }
}

/** Whether a request may have the node: at once, or once it is woken. */
function isFree(record: HeldNode["record"]): boolean {
  return (record.state === "ready" || isSuspended(record)) && record.allocatedTo === null;
}

/** What the label says now of nodes that were used before. */
function isForAll({ open, name }: ServingPool, { record }: HeldNode): boolean {
  const labels = open.config.pools.find((one) => one.name === name)?.labels;
  return labels?.get(record.type[0] ?? "")?.reuse?.forAll === true;
}

/** Whether the machine of a ready node answers. Drivers without the capability `probes` are not asked; static hosts are, each time. */
async function isAlive(
  context: RequestHandles,
  pool: ServingPool,
  node: HeldNode,
  signal: AbortSignal,
): Promise<boolean> {
  const { driver, provider } = pool.open;
  if (!driver.capabilities.probes) return true;
  const { record } = node;
  // A record holds no key of the inventory, so the host is found by the three facts that identify it.
  const item = provider
    .inventory()
    .find(
      (host) =>
        host.machine.hostname === record.hostname &&
        host.connection.port === record.connectionPort &&
        host.connection.username === record.username,
    );
  const probe =
    item === undefined
      ? ({ alive: false, why: "it is no longer in the configuration" } as const)
      : await probeInTime(context.clock, provider, item, signal);
  if (probe.alive) return true;
  await takeOutDead(context, node, probe.why);
  return false;
}

/** Prepares the machine for its user. A machine that cannot be prepared counts as dead, and its node is deleted. */
async function isReady(
  context: RequestHandles,
  pool: ServingPool,
  node: HeldNode,
  request: string,
  signal: AbortSignal,
): Promise<boolean> {
  let why: string | undefined;
  try {
    // A rejection means that the launch was cancelled, not that the machine is bad: the node becomes free again.
    why = await handOver(context, pool, node, request, signal);
  } catch (error) {
    await node.write({ allocatedTo: null });
    throw error;
  }
  if (why === undefined) return true;
  const { times = 0 } = context.handOversFailed.get(request) ?? {};
  // All counts start again: a request that meets bad machines only fails some tries later.
  if (context.handOversFailed.size > REMEMBERED) context.handOversFailed.clear();
  context.handOversFailed.set(request, { times: times + 1, why });
  await takeOutDead(context, node, why);
  return false;
}

/** Sends a node whose machine does not answer to its deletion, and unlocks it in the same commit. */
async function takeOutDead(context: RequestHandles, node: HeldNode, why: string): Promise<void> {
  const facts = { host: node.record.hostname, why };
  context.journal.write({ event: "node.dead", node: node.id, facts, record: node.record });
  // Throws FenceLost: the probe may have taken longer than the session lived, and the node may be another launcher's by now.
  context.fence.demand(node.held);
  await node.writeAndRelease({ state: "deleting", allocatedTo: null });
}

/** Milliseconds for a driver to prepare a machine for its user. Getting back what a sliver has lent usually takes less than a second. */
const HANDOVER_MS = 30_000;

/**
 * Lets the driver prepare a ready node, which we have locked and allocated, before it is delivered: what the machine has lent is taken
 * back. Resolves with undefined, or with the reason why the node must not be delivered. Rejects when `signal` aborts.
 */
export async function handOver(
  context: RequestHandles,
  pool: ServingPool,
  node: HeldNode,
  request: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { handover } = pool.open.provider.offers ?? {};
  if (handover === undefined) return undefined;
  const late = () => new DriverError("timeout", `its machine was not prepared within ${HANDOVER_MS} ms`);
  using limit = deadline(context.clock, HANDOVER_MS, late, signal);
  try {
    const { externalId } = node.record;
    const [tag, step] = [tagOf(context, node), { signal: limit.signal, externalId, request }];
    await handover.ready(tag, step);
    // How a machine is reached may expire, as tokens for pods do; its user gets a fresh one.
    const access = await handover.access?.(tag, step);
    if (access !== undefined) await node.write({ connectionPort: access });
    return undefined;
  } catch (error) {
    if (signal.aborted) throw error;
    return messageOf(error);
  }
}
