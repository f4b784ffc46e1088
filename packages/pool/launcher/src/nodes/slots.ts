import {
  type CreateOrder,
  DriverError,
  type Machine,
  type PoolConfig,
  type SlotSettings,
  type Step,
  type StepContext,
  type Tag,
} from "@nodeyard/driver";
import {
  claimPath,
  encodeClaim,
  type NodePatch,
  type NodeRecord,
  paths,
  type SlotPlace,
  slotData,
  slotPlace,
  slotPriceOf,
  slotsFolder,
  withoutPlace,
  withoutPrice,
  withPrice,
} from "@nodeyard/model";
import { backoff, sleep } from "@nodeyard/runtime";
import type { PlannedSlot } from "@nodeyard/scheduler";
import { FenceLost, isRefused } from "@nodeyard/tree";
import { agrees, type SlotClaim } from "@nodeyard/view";
import type { OpenProvider } from "../handles.ts";
import type { HeldNode } from "../held-records.ts";
import { backingNode } from "../metastatic/backings.ts";
import type { LaunchHandles, NodeHandles } from "./handles.ts";

/** One commit to the tree, at most, milliseconds. */
const CLAIM_MS = 60_000;

/**
 * The steps of a launch that needs a slot: first the claim of a slot, then the steps of the driver. Driver errors and FenceLost pass
 * through. A claim that was made is not freed here: the removal of the machine frees it.
 */
export async function* createInSlot(
  context: LaunchHandles,
  open: OpenProvider,
  node: HeldNode,
  order: CreateOrder,
  step: StepContext,
  planned: PlannedSlot | undefined,
): AsyncGenerator<Step, Machine, void> {
  const { config, driver, provider } = open;
  const { label, pool, request } = order;
  const notes = driver.slots?.of(label).notes;
  // Of an attempt that was cut off.
  if (context.view.slots.claimsOf(node.id).length > 0)
    yield* removeFromSlot(context, open, node, order.tag, step);
  const want = { request: request.id, node: node.id, provider: config.name, label: label.name };
  let chosenFor: readonly string[] = [];
  // Ends with a slot, with the scheduler's refusal, or with the signal of the launch.
  for (let attempt = 0; ; attempt++) {
    yield { step: "backing-node", deadlineMs: config.launchTimeoutMs };
    const place = (attempt === 0 ? planned : undefined) ?? (await context.slots.next(want, step.signal));
    let claimed = false;
    chosenFor = place.caches;
    try {
      yield { step: "slot", deadlineMs: CLAIM_MS };
      claimed = await claim(context, node, place, pool, config.name, notes);
    } finally {
      // Also after an error, or the scheduler would keep the slot for a launch that has ended.
      if (!claimed) context.slots.lost(place);
    }
    if (claimed) break;
    await sleep(context.clock, backoff(context.random, attempt, 5, 1_000), step.signal);
  }
  const backing = context.view.slots.backings.get(slotPlace(node.record)?.backing ?? "");
  if (backing === undefined)
    throw new DriverError("transient", `the backing node of node ${node.id} is gone`);
  if (chosenFor.length > 0) {
    const remark = `its slot is on backing node ${backing.id}, which has its cache ${chosenFor.join(" and ")}`;
    context.journal.write({ event: "node.remark", node: node.id, facts: { remark } });
  }
  const slot = { backing: backingNode(backing), machine: slotMachine(node.id, node.record) };
  return yield* provider.create({ ...order, slot }, step);
}

/**
 * The steps of a removal: the slot is free once nothing of the node is left there. The order matters: freed earlier, the next node in
 * the slot would meet the sliver of this one.
 */
export async function* removeFromSlot(
  context: NodeHandles,
  { config, provider }: OpenProvider,
  node: HeldNode,
  tag: Tag,
  step: StepContext,
): AsyncGenerator<Step, void, void> {
  const claims = context.view.slots.claimsOf(node.id);
  yield* provider.remove(tag, step);
  yield { step: "slot", deadlineMs: CLAIM_MS };
  count(context, config.name, "freed", await freeSlot(node, claims));
}

/** Whether the slot is the node's now. False when the backing node has changed since the choice; the scheduler then chooses again. */
async function claim(
  context: LaunchHandles,
  node: HeldNode,
  place: PlannedSlot,
  pool: PoolConfig,
  provider: string,
  notes: SlotSettings["notes"],
): Promise<boolean> {
  const backing = context.view.nodes.byId.get(place.backing);
  const served = [...context.pools.values()].some(({ open }) => open.config.name === provider);
  // The launcher that serves the provider now may not see our claim, and the backing node's record may have changed since the choice.
  if (!served) return false;
  let outcome: "claimed" | "moved" = "moved";
  if (backing?.version === place.version) {
    const patch = slotPatch({ id: node.id, provider }, pool, backing.record, place, notes);
    outcome = await claimSlot(node, place, patch);
  }
  count(context, provider, outcome === "claimed" ? "claimed" : "lost");
  return outcome === "claimed";
}

function count(
  { counters }: Pick<NodeHandles, "counters">,
  provider: string,
  change: "claimed" | "lost" | "freed",
  by = 1,
): void {
  counters.add("launcher.slots", by, { provider, change });
}

/**
 * Gives a node a slot: its record and the claim in one commit, which also demands that the backing node is as it was when the
 * slot was chosen. "moved": it is not, or someone else was quicker; nothing was written.
 */
export async function claimSlot(
  node: HeldNode,
  place: PlannedSlot,
  patch: NodePatch,
): Promise<"claimed" | "moved"> {
  try {
    await node.write(patch, (set) => [
      node.held.fence,
      { op: "check", path: paths.node(place.backing), version: place.version },
      { op: "create", path: claimPath(place.backing, place.slot), data: encodeClaim(node.id) },
      set,
    ]);
    return "claimed";
  } catch (error) {
    // HeldRecord turns a refused commit into FenceLost. Where the backing node or its claim refused it, our lock is still good.
    if (!(error instanceof FenceLost)) throw error;
    const [backing, claims] = [paths.node(place.backing), slotsFolder(place.backing)];
    const moved =
      isRefused(error.cause, "tree.bad_version", backing) ||
      [backing, claims].some((path) => isRefused(error.cause, "tree.no_node", path)) ||
      isRefused(error.cause, "tree.node_exists", claimPath(place.backing, place.slot));
    if (moved) return "moved";
    throw error;
  }
}

/**
 * Frees the slot of a node that this process holds: one commit deletes the claim and removes the slot from the node's record. The next
 * claim of the slot has the same path and the same version, so the claim alone does not show whose it is. The commit therefore checks
 * the version of the record that names the slot: a process that was suspended before the commit, or repeats it after a lost reply,
 * cannot free the claim of another node. Claims that no record names are left to the owner. Resolves with the number of freed claims.
 */
export async function freeSlot(node: HeldNode, claims: readonly SlotClaim[]): Promise<number> {
  const place = slotPlace(node.record);
  const own = claims.filter((claim) => agrees(claim, place));
  if (place === undefined || own.length === 0) return 0;
  // Who has the slot next pays for it.
  await node.write({ driverData: withoutPrice(withoutPlace(node.record)) }, (set) => {
    // After what another wrote was merged, or an answer was lost, it may be there no longer, or have another.
    const now = slotPlace(node.record);
    if (now?.backing !== place.backing || now.slot !== place.slot)
      throw new FenceLost(`node ${node.id}: it does not have slot ${place.backing}/${place.slot} any more`);
    return [node.held.fence, set, ...own.map(({ path }) => ({ op: "delete", path }) as const)];
  });
  return own.length;
}

/**
 * What the record of a node says once it has a slot: what its backing node says, where that is (docs/contract/drivers.md,
 * "Metastatic records").
 */
function slotPatch(
  node: { readonly id: string; readonly provider: string },
  pool: PoolConfig,
  backing: NodeRecord,
  place: SlotPlace,
  notes: SlotSettings["notes"],
): NodePatch {
  const { username, pythonPath, shellType, connectionPort, connectionType } = backing;
  return {
    externalId: node.id,
    ...placeOf(backing),
    ...{ username, pythonPath, shellType, connectionPort, connectionType },
    attributes:
      backing.attributes === null && pool.nodeAttributes === null
        ? null
        : { ...backing.attributes, ...pool.nodeAttributes },
    slot: place.slot,
    driverData: withPrice(
      { ...slotData({ id: node.id, pool: pool.name, provider: node.provider }, place), ...notes },
      slotPriceOf(backing),
    ),
  };
}

/** Where a machine is, and how it proves that it is the one: a slot has all of it of its backing node. */
function placeOf(record: NodeRecord) {
  const { interfaceIp, publicIpv4, publicIpv6, privateIpv4, az, region, cloud, hostKeys } = record;
  return { interfaceIp, publicIpv4, publicIpv6, privateIpv4, az, region, cloud, hostKeys };
}

/** The same as a machine; how to connect is in the record already, where a port may also be an object. */
function slotMachine(id: string, record: NodeRecord): Machine {
  const { connectionPort: port, connectionType: type, slot, driverData } = record;
  return {
    externalId: id,
    ...placeOf(record),
    slot,
    driverData,
    ...(typeof port === "number" && { connection: { port, ...(type !== null && { type }) } }),
  };
}
