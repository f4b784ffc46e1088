import type { SlotSettings } from "@nodeyard/driver";
import { paths } from "@nodeyard/model";
import type { CheckOp } from "@nodeyard/tree";
import type { Backing } from "@nodeyard/view";
import type { RecordHandles } from "../held-records.ts";
import { takeOut } from "../nodes/node-lock.ts";
import { adopt, askForBacking, withdraw } from "./adopt.ts";
import { folderEnd, markFailed, openBacking, ownContender, releaseBacking } from "./backing-lock.ts";
import { dropClaim, reclaim } from "./compare.ts";
import type { OwnerAction } from "./plan.ts";

/** What the owner of a metastatic provider works with. */
export interface OwnerParts {
  readonly context: RecordHandles;
  readonly provider: string;
  /** How the labels of the provider are cut into slots; empty for one that only drains. */
  readonly labels: ReadonlyMap<string, SlotSettings>;
  /** Treats a node as no backing node of this provider until its record changes. */
  readonly disown: (backing: Backing) => void;
}

/**
 * Does one thing of a plan; `fence` demands that we still are the owner. "later": not possible at the moment. Rejects with what the
 * tree or the fence says; the controller plans the action again after a pause.
 */
export async function carryOut(
  parts: OwnerParts,
  action: OwnerAction,
  fence: CheckOp,
): Promise<"done" | "later"> {
  const { context, provider, labels } = parts;
  const count = (change: string, by = 1) =>
    context.counters.add("launcher.backing_nodes", by, { provider, change });
  switch (action.type) {
    case "ask":
      await askAll(parts, action.label, action.count, fence);
      count("asked", action.count);
      return "done";
    case "withdraw":
      await withdraw(context, action.request, action.why, fence);
      return "done";
    case "adopt": {
      const { label, request } = action;
      // A label that is not configured any more: its node is adopted only to be given back.
      const use = { label, slots: labels.get(label)?.slots ?? 1 };
      const adopted = await adopt(context, provider, request, use, fence);
      if (adopted === "adopted") count("adopted");
      return adopted === "later" ? "later" : "done";
    }
    case "open":
      // Without our contender it is another client's node, whatever its record says.
      if (!(await openBacking(context, provider, action.backing, fence))) disown(parts, action.backing);
      return "done";
    case "fail":
      if (await markFailed(context, provider, action.backing, fence)) count("failed");
      else disown(parts, action.backing);
      return "done";
    case "reclaim":
      await reclaim(context, action.node, fence);
      return "done";
    case "drop":
      await dropClaim(context, action.claim, fence);
      return "done";
    case "recycle":
      await takeOut(context, action.node, action.why);
      return "done";
    case "release":
      if (await releaseBacking(context, provider, action.backing, action.why, fence)) count("released");
      return "done";
    case "close":
      await context.tree.commit([...folderEnd(context, action.backing), fence]);
      return "done";
  }
}

/** All at once. When one fails, the next plan asks for what is still missing. */
async function askAll(
  { context, provider, labels }: OwnerParts,
  label: string,
  count: number,
  fence: CheckOp,
): Promise<void> {
  const { backingLabel } = labels.get(label)!;
  const ask = () => askForBacking(context, provider, label, backingLabel, fence);
  await Promise.all(Array.from({ length: count }, ask));
}

/** Without its lock a node is not ours to write, whatever its record says. */
function disown({ context, provider, disown }: OwnerParts, backing: Backing): void {
  disown(backing);
  const facts = { provider, node: backing.id };
  context.log.warn(facts, "a node's record names this provider as its user, but its lock does not");
}

/**
 * Python launchers lock a node before they write its record. One that died in between left a ready node that is locked for ever.
 * Called with each full comparison: a backing node says `in-use`, so nothing uses a ready one that has our contender.
 */
export async function unlockForgotten(
  { context, provider, labels }: OwnerParts,
  fence: () => CheckOp,
): Promise<void> {
  const { view, tree, log } = context;
  const backingLabels = new Set([...labels.values()].map(({ backingLabel }) => backingLabel));
  for (const id of [...view.nodes.byState.get("ready")]) {
    const entry = view.nodes.byId.get(id);
    if (entry === undefined || entry.contenders.length === 0) continue;
    if (!entry.record.type.some((label) => backingLabels.has(label))) continue;
    const contender = await ownContender(context, provider, id);
    if (contender === undefined) continue;
    await tree.commit([
      { op: "check", path: paths.node(id), version: entry.version },
      { op: "delete", path: contender },
      fence(),
    ]);
    log.info({ provider, node: id }, "unlocked a node that was locked for us and never used");
  }
}
