import { withRoot } from "@nodeyard/coordination";
import type { LabelConfig, PoolConfig, Resources } from "@nodeyard/driver";
import { changeNode, encodeNode, leaseData, type NodeRecord, newNode, paths } from "@nodeyard/model";
import { defined, hexId, sleep } from "@nodeyard/runtime";
import { FenceLost, isRefused, type Op, type OpResult, TreeError, treeSeconds } from "@nodeyard/tree";
import type { ServingPool } from "../handles.ts";
import { type HeldNode, type HeldRequest, heldNode } from "../held-records.ts";
import { type BootImage, bootImage } from "./boot-image.ts";
import type { NodeHandles } from "./handles.ts";

/** Most looks for a record whose creation was not answered; with the pauses between them they take 76 s. */
const LOOKS = 20;

/**
 * Makes the record of a node to be launched: `init` alone (its id comes from the tree), then lock and `building` in one commit
 * (docs/contract/locks.md, "First by construction"). The record stands, with our tag, before the cloud is called. Rejects with
 * ImageGone, LimitReached, FenceLost, or the TreeError of a call. A record that exists by then has no lock, and is deleted as any that
 * was left behind (docs/contract/launcher.md, "What is deleted unlocked").
 */
export async function createNode(
  context: NodeHandles,
  pool: ServingPool,
  request: HeldRequest,
  label: LabelConfig,
  planned: { readonly need: Resources; readonly zone: string | null; readonly type: string | undefined },
): Promise<HeldNode> {
  const { config } = pool.open;
  // Throws when there is no image to boot: better before the record exists than after.
  bootImage(context, pool, label, { nodeId: "0", attempt: 1 });
  // One-time: the record is found by it when the reply is lost.
  const token = hexId(context.random);
  // Before the cloud is called: a deletion has to know where the machine may be.
  const place = pool.open.provider.place?.();
  const init = newNode(
    {
      state: "init",
      provider: config.name,
      pool: pool.name,
      type: [label.name],
      launcher: pool.id,
      allocatedTo: request.id,
      tenantName: request.record.tenantName,
      requestor: request.record.requestor,
      userData: leaseData(request.record),
      attributes: poolOf(pool)?.nodeAttributes ?? null,
      az: planned.zone,
      // Counted in ledgers from here on (limits/holdings.ts).
      resources: { ...planned.need },
      driverData: { nodeyard: { token, ...defined({ place, offering: planned.type }) } },
    },
    treeSeconds(context),
  );
  // A commit that is refused costs a round trip; a lost lock is mostly known without one.
  context.fence.demand(request.held);
  const id = await createRecord(context, pool, request, init, token);
  const { provider, az } = init;
  // Only in the history of the node: the events of a nodeset of hundreds would push all others out of the request's history.
  const facts = {
    request: request.id,
    provider,
    pool: pool.name,
    label: label.name,
    az,
    ...defined({ type: planned.type }),
  };
  context.journal.write({ event: "node.created", node: id, facts, record: init });
  // The tree may have answered late, so the image is chosen now.
  const boot = bootImage(context, pool, label, { nodeId: id, attempt: 1 });
  return lockBuilding(context, request, id, init, label, boot);
}

/** The pool's configuration, which a reload may have removed. */
function poolOf({ open, name }: ServingPool): PoolConfig | undefined {
  return open.config.pools.find((pool) => pool.name === name);
}

/**
 * Creates the record and returns the id that the tree assigned. When the reply is lost, looks for the record by its token: another record
 * would count twice against limits, and the first would stay until a sweep.
 */
async function createRecord(
  context: NodeHandles,
  pool: ServingPool,
  request: HeldRequest,
  init: NodeRecord,
  token: string,
): Promise<string> {
  const { epoch } = request.held;
  const ignoresQuota = poolOf(pool)?.ignoreProviderQuota === true;
  const ops: readonly Op[] = [
    { op: "create", path: `${paths.nodes}/`, data: encodeNode(init), sequential: true },
    // A call that waits for a connection may be carried out in the next session, in which we do not hold the request any more.
    request.held.fence,
  ];
  try {
    const [made] = await withRoot(
      context.tree,
      paths.nodes,
      () => context.ledgers.counted(undefined, init, ops, ignoresQuota) ?? context.tree.commit(ops),
    );
    const { path } = made as Extract<OpResult, { op: "create" }>;
    return path.slice(path.lastIndexOf("/") + 1);
  } catch (error) {
    if (isRequestLost(error, request)) throw new FenceLost(`lock ${request.held.contender}`, error);
    if (!(error instanceof TreeError) || error.outcome !== "unknown") throw error;
    // The view is asked instead of the tree: it has an index by request, while the tree would have to be read whole.
    for (let look = 0; look < LOOKS && context.tree.session().epoch === epoch; look++) {
      await sleep(context.clock, Math.min(5_000, 100 * 2 ** look));
      if (!context.view.complete || context.tree.session().state !== "connected") continue;
      await context.tree.sync(paths.nodes);
      const found = findByToken(context, request.id, token);
      if (found !== undefined) return found;
      // By now the event of a record that was made has arrived: the commit was not applied.
      if (look > 2) break;
    }
    throw new FenceLost("the reply to the creation of a node record was lost", error);
  }
}

/** The node of the request whose record has this one-time token. */
function findByToken(context: NodeHandles, request: string, token: string): string | undefined {
  for (const id of context.view.nodes.byRequest.get(request)) {
    const data = context.view.nodes.byId.get(id)?.record.driverData as {
      nodeyard?: { token?: unknown };
    } | null;
    if (data?.nodeyard?.token === token) return id;
  }
  return undefined;
}

/** Whether a commit was refused because the request's contender is gone. Nobody makes nodes for a request that it does not hold. */
function isRequestLost(error: unknown, request: HeldRequest): boolean {
  return isRefused(error, "tree.no_node", request.held.contender);
}

/** Locks the new record and sets it to `building`, in one commit that also checks that we still hold the request. */
async function lockBuilding(
  context: NodeHandles,
  request: HeldRequest,
  id: string,
  init: NodeRecord,
  { connection }: LabelConfig,
  boot: BootImage,
): Promise<HeldNode> {
  const building = changeNode(
    init,
    {
      state: "building",
      ...boot.patch,
      connectionType: connection.type,
      connectionPort: connection.port,
    },
    treeSeconds(context),
  );
  // Version 0: nobody has written the record since it was created.
  const set = { op: "set", path: paths.node(id), data: encodeNode(building), version: 0 } as const;
  const locked = await context.fence
    .lockFresh(paths.nodeLock(id), [set, request.held.fence])
    .catch((error: unknown) => {
      throw isRequestLost(error, request) ? new FenceLost(`lock ${request.held.contender}`, error) : error;
    });
  // A lock parent that is there already means that another client was quicker, so ours would not be first by construction.
  if (locked === "exists") throw new FenceLost(`node ${id}: someone else locked it first`);
  const version = (locked.results[0] as Extract<OpResult, { op: "set" }>).stat.version;
  return heldNode(context, locked.held, id, building, version);
}
