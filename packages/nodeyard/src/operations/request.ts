import {
  decodeLease,
  encodeLease,
  encodeRequest,
  LEASES,
  type Lease,
  leasePath,
  leaseRequestor,
  newRequest,
  paths,
} from "@nodeyard/model";
import { hexId, NodeyardError } from "@nodeyard/runtime";
import { ensurePath, orUndefined, TreeError, treeNow } from "@nodeyard/tree";
import type { OperationHandles } from "./handles.ts";

/** A lease cannot be asked for, or did not come to its nodes. */
export class LeaseError extends NodeyardError {}

/** What a client without a session asks for. */
export interface AskOptions {
  readonly labels: readonly string[];
  readonly owner: string;
  /** How long the nodes may be kept, milliseconds; counted from now, waiting included. */
  readonly forMs: number;
  /** Three digits; lower is served first. Zuul's own are 100, 200, 300. */
  readonly priority?: string;
}

/**
 * Asks for a nodeset, always as a lease: the record stands before the request is written, so that neither a lost reply nor a
 * client that dies loses or keeps nodes by accident. Returns the lease with its request's id.
 */
export async function askForNodes(handles: OperationHandles, options: AskOptions): Promise<Lease> {
  const { tree, random } = handles;
  if (options.labels.length === 0)
    throw new LeaseError(
      "lease.no_labels",
      "a request needs at least one label: nodeyard request LABEL[:N]...",
    );
  const id = hexId(random).slice(0, 12);
  const now = treeNow(handles);
  const lease: Lease = {
    id,
    state: "waiting",
    owner: options.owner,
    labels: [...options.labels],
    request: null,
    nodes: [],
    created: now,
    expires: now + options.forMs,
  };
  await ensurePath(tree, LEASES);
  await ensurePath(tree, paths.requests);
  await tree.create(leasePath(id), encodeLease(lease));
  try {
    return await writeRequest(handles, lease, options);
  } catch (error) {
    // Whether the request stands may be unknown. A caller that gets an error must not be left with nodes.
    await releaseLease(handles, id).catch(() => {});
    throw error;
  }
}

async function writeRequest(handles: OperationHandles, lease: Lease, options: AskOptions): Promise<Lease> {
  const { tree, random } = handles;
  const { id } = lease;
  const now = treeNow(handles);
  const record = newRequest(
    {
      state: "requested",
      nodeTypes: [...options.labels],
      requestor: leaseRequestor(id),
      requestorData: { lease: id },
      eventId: hexId(random),
      createdTime: now / 1000,
    },
    now / 1000,
  );
  const { path } = await tree.create(
    `${paths.requests}/${options.priority ?? "100"}-`,
    encodeRequest(record),
    { sequential: true },
  );
  const asked: Lease = { ...lease, request: path.slice(path.lastIndexOf("/") + 1) };
  try {
    await tree.set(leasePath(id), encodeLease(asked), { version: 0 });
  } catch (error) {
    // A launcher was quicker: it found the request by its requestor, and its state of the lease is the newer one.
    if (!(error instanceof TreeError) || error.code !== "tree.bad_version") throw error;
  }
  return asked;
}

/** Gives a lease back. Any launcher then returns its nodes. Twice, or already gone: nothing. */
export async function releaseLease(handles: OperationHandles, id: string): Promise<"released" | "unknown"> {
  const { tree } = handles;
  for (;;) {
    const found = await orUndefined(tree.get(leasePath(id)));
    if (found === undefined) return "unknown";
    const lease = decodeLease(id, found.data);
    if (lease.state === "released") return "released";
    try {
      await tree.set(leasePath(id), encodeLease({ ...lease, state: "released" }, found.data), {
        version: found.stat.version,
      });
      return "released";
    } catch (error) {
      // A launcher wrote it meanwhile, or took it away because its time was over: what is there now decides.
      if (!(error instanceof TreeError) || !["tree.bad_version", "tree.no_node"].includes(error.code))
        throw error;
    }
  }
}
