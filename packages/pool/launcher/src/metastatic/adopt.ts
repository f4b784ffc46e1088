import { withRoot } from "@nodeyard/coordination";
import {
  backingOwner,
  decodeNode,
  encodeBacking,
  encodeFolder,
  encodeRequest,
  newRequest,
  paths,
  SLOTS,
  slotsFolder,
} from "@nodeyard/model";
import { hexId } from "@nodeyard/runtime";
import { type CheckOp, ensurePath, type Op, treeSeconds } from "@nodeyard/tree";
import type { RequestEntry } from "@nodeyard/view";
import { type HeldNode, heldNode, type RecordHandles } from "../held-records.ts";
import { lockNode } from "../nodes/node-lock.ts";

/** "later": another client holds the node's lock at the moment. "none": the request has no node to adopt. */
export type Adopted = "adopted" | "later" | "none";

/**
 * Takes a delivered node as a backing node. Durable lock, record, slots folder and the end of the request are one commit, so that a
 * crash cannot leave a locked node without an owner. Rejects with FenceLost or CommitFailed when this launcher does not own the
 * provider any more, or the node changed; nothing is adopted then.
 */
export async function adopt(
  context: RecordHandles,
  provider: string,
  request: RequestEntry,
  use: { readonly label: string; readonly slots: number },
  fence: CheckOp,
): Promise<Adopted> {
  const owner = backingOwner(provider);
  const end: Op = { op: "delete", path: paths.request(request.id) };
  const [id] = request.record.nodes;
  const node = id === undefined ? "gone" : await lockNode(context, id);
  if (node === "busy") return "later";
  if (node === "gone") {
    await context.tree.commit([end, fence]);
    return "none";
  }
  // From here on every way out releases the lock, or deletes it in the commit.
  const { held } = node;
  const fresh = await readHeld(context, node).catch(async (error: unknown) => {
    await held.release();
    throw error;
  });
  const { record } = fresh;
  // Another client took or changed the node. The request is of no use, and a new one is made where slots still lack.
  if (record.allocatedTo !== request.id || record.state !== "ready") {
    await held.release();
    await context.tree.commit([end, fence]);
    return "none";
  }
  // The age counts from `ready`, without the time of the launch.
  const launched = record.stateTime ?? treeSeconds(context);
  const { label, slots } = use;
  try {
    await ensurePath(context.tree, SLOTS);
    await fresh.write(
      { state: "in-use", userData: encodeBacking({ owner, label, slots, failed: false, launched }) },
      (set) => [
        held.fence,
        {
          op: "create",
          path: `${held.parent}/${hexId(context.random)}__lock__`,
          // The data by which every launcher knows whose backing node it is (docs/contract/locks.md, "Persistent contenders").
          data: Buffer.from(owner),
          sequential: true,
        },
        set,
        { op: "create", path: slotsFolder(node.id), data: encodeFolder(provider) },
        end,
        // After the durable contender stands: in between nobody else can come first.
        { op: "delete", path: held.contender },
        fence,
      ],
    );
  } catch (error) {
    await held.release();
    throw error;
  }
  context.journal.write({
    event: "backing.adopted",
    node: node.id,
    request: request.id,
    facts: { provider, label, slots },
  });
  return "adopted";
}

/** The view may show the request before the node. */
async function readHeld(context: RecordHandles, { id, held, path }: HeldNode): Promise<HeldNode> {
  const found = await context.tree.get(path);
  return heldNode(context, held, id, decodeNode(id, found.data), found.stat.version);
}

/**
 * Requests one node of the backing label as Nodepool does (docs/contract/drivers.md, "Metastatic records"), so that any launcher can
 * serve it. The request ends with this session. Its purpose is stored in `requestor_data`, a field that the requestor defines.
 */
export async function askForBacking(
  context: RecordHandles,
  provider: string,
  label: string,
  backingLabel: string,
  fence: CheckOp,
): Promise<void> {
  const eventId = hexId(context.random);
  const record = newRequest(
    {
      state: "requested",
      nodeTypes: [backingLabel],
      requestor: backingOwner(provider),
      requestorData: { nodeyard: { label, token: eventId } },
      // A ready node of the label is as good as a new one.
      reuse: true,
      eventId,
      createdTime: null,
    },
    treeSeconds(context),
  );
  const create = {
    op: "create",
    path: `${paths.requests}/100-`,
    data: encodeRequest(record),
    ephemeral: true,
    sequential: true,
  } as const;
  const [made] = await withRoot(context.tree, paths.requests, () => context.tree.commit([create, fence]));
  const request = made.path.slice(made.path.lastIndexOf("/") + 1);
  context.journal.write({ event: "backing.requested", request, facts: { provider, label, backingLabel } });
}

/** Deletes a request, unless its record has changed since it was read. */
export async function withdraw(
  context: RecordHandles,
  request: RequestEntry,
  why: string,
  fence: CheckOp,
): Promise<void> {
  await context.tree.commit([
    { op: "delete", path: paths.request(request.id), version: request.version },
    fence,
  ]);
  context.journal.write({ event: "backing.withdrawn", request: request.id, facts: { why } });
}
