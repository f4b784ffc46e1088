import {
  decodeLease,
  encodeLease,
  encodeRequest,
  LEASES,
  type Lease,
  type LeaseJob,
  type LeaseVerdict,
  leasePath,
  leaseRequestor,
  newRequest,
  type Pairing,
  type PartOfSet,
  paths,
} from "@nodeyard/model";
import { defined, hexId, NodeyardError } from "@nodeyard/runtime";
import { CommitFailed, ensurePath, ignoreExisting, orUndefined, TreeError, treeNow } from "@nodeyard/tree";
import type { OperationHandles } from "./handles.ts";

/** A lease cannot be asked for, or did not come to its nodes. */
export class LeaseError extends NodeyardError {}

/** What a client without a session asks for. */
export interface AskOptions {
  /** One for each node, in the order in which the nodes are given. */
  readonly labels: readonly string[];
  /** Who has it, for people, and for the rights of the API: `user@host`, or the name of the API's client. */
  readonly owner: string;
  /** How long the nodes may be kept, milliseconds; counted from now, waiting included. */
  readonly forMs: number;
  /** Three digits; lower is served first. Zuul's own are 100, 200, 300. Absent: 100. */
  readonly priority?: string;
  /** The tenant whose limits count; absent: no tenant. */
  readonly tenant?: string;
  /** The lease ends when no heartbeat comes for so long, milliseconds; absent: it needs none. */
  readonly heartbeatMs?: number;
  /** The job of a CI that it is for. */
  readonly job?: LeaseJob;
  /** The memory of the client. */
  readonly data?: string;
  /** What the job is about, for caches of its own. */
  readonly project?: string;
  readonly branch?: string;
  /** A mixed set: each label may come from a pool of its own, and these facts agree. Absent: one pool serves all of it. */
  readonly same?: readonly Pairing[];
}

/**
 * Asks for a nodeset, always as a lease: the record stands before the request is written, so that neither a lost reply nor a
 * client that dies loses or keeps nodes by accident. Returns the lease with its request's id. Rejects with LeaseError for no
 * labels; after any other error the lease is released as far as the tree can be reached.
 */
export async function askForNodes(handles: OperationHandles, options: AskOptions): Promise<Lease> {
  const { tree, random } = handles;
  const lease = newLease(handles, hexId(random).slice(0, 12), options);
  await ensureRoots(handles);
  try {
    await tree.create(leasePath(lease.id), encodeLease(lease));
    // Launchers write the requests of a set, one after the other.
    if (lease.set !== null) return lease;
    const { path } = await tree.create(requestPath(options), requestOfLease(handles, lease, options), {
      sequential: true,
    });
    return await noteRequest(handles, lease, path, 0);
  } catch (error) {
    // Whether the lease and its request stand may be unknown. A caller that gets an error must not be left with nodes.
    await releaseLease(handles, lease.id).catch(() => {});
    throw error;
  }
}

/**
 * As `askForNodes`, but the lease has this id, and however often this is called, in whatever process, one request is made: a caller that
 * got an error calls it again. As long as the lease exists, the same comes back. Rejects with LeaseError where it was made for
 * something else.
 */
export async function askForNodesOnce(
  handles: OperationHandles,
  id: string,
  options: AskOptions,
): Promise<{ readonly lease: Lease; readonly made: boolean }> {
  const { tree } = handles;
  const lease = newLease(handles, id, options);
  await ensureRoots(handles);
  await tree.create(leasePath(id), encodeLease(lease)).catch(ignoreExisting);
  const found = await tree.get(leasePath(id));
  const stands = decodeLease(id, found.data);
  if (!isSame(stands, lease))
    throw new LeaseError(
      "lease.key_used",
      `lease ${id} was made with the same key for something else: choose another key for each request`,
    );
  if (found.stat.version > 0 || stands.set !== null) return { lease: stands, made: false };
  try {
    // Only who changes the first version of the lease writes a request, in the same commit.
    const [{ stat }, { path }] = await tree.commit([
      { op: "set", path: leasePath(id), data: found.data, version: 0 },
      {
        op: "create",
        path: requestPath(options),
        data: requestOfLease(handles, stands, options),
        sequential: true,
      },
    ] as const);
    return { lease: await noteRequest(handles, stands, path, stat.version), made: true };
  } catch (error) {
    if (!(error instanceof CommitFailed) || error.reason.code !== "tree.bad_version") throw error;
    return { lease: decodeLease(id, (await tree.get(leasePath(id))).data), made: false };
  }
}

/** With heartbeats the expiry is the next heartbeat's, and `until` the end in any case; without them `until` is null. */
function newLease(handles: OperationHandles, id: string, options: AskOptions): Lease {
  const { labels, owner, forMs, tenant = null, heartbeatMs = null, job = null, data = null, same } = options;
  if (labels.length === 0)
    throw new LeaseError(
      "lease.no_labels",
      "a request needs at least one label: nodeyard request LABEL[:N]...",
    );
  const strange = same?.flatMap((rule) => rule.labels).find((label) => !labels.includes(label));
  if (strange !== undefined)
    throw new LeaseError(
      "lease.strange_rule",
      `the request does not ask for ${JSON.stringify(strange)}, which one of its rules names`,
    );
  const now = treeNow(handles);
  const until = now + forMs;
  return {
    id,
    state: same === undefined ? "waiting" : "gathering",
    owner,
    labels: [...labels],
    request: null,
    nodes: [],
    created: now,
    expires: heartbeatMs === null ? until : Math.min(until, now + heartbeatMs),
    tenant,
    heartbeat: heartbeatMs,
    until: heartbeatMs === null ? null : until,
    verdict: null,
    expired: false,
    commit: false,
    job,
    data,
    set:
      same === undefined
        ? null
        : {
            priority: options.priority ?? PRIORITY,
            project: options.project ?? null,
            branch: options.branch ?? null,
            same: [...same],
            parts: [...new Set(labels)].map((label) => ({ label, nodes: [], asked: null })),
            yields: false,
          },
    why: null,
  };
}

/** A tree that no launcher has used yet lacks the folders; the request waits for the first one. */
async function ensureRoots({ tree }: OperationHandles): Promise<void> {
  await ensurePath(tree, LEASES);
  await ensurePath(tree, paths.requests);
}

const PRIORITY = "100";

/** Launchers serve requests in the order of these names (docs/contract/tree.md, "Request ids"). */
export function requestPath({ priority = PRIORITY }: Pick<AskOptions, "priority">): string {
  return `${paths.requests}/${priority}-`;
}

/** The request of a lease, or of a part of a set, as launchers know it again: by its requestor, also when the lease does not have its id yet. */
export function requestOfLease(
  handles: OperationHandles,
  { id, labels, tenant, owner }: Pick<Lease, "id" | "labels" | "tenant" | "owner">,
  {
    project,
    branch,
    part,
  }: { readonly project?: string; readonly branch?: string; readonly part?: PartOfSet },
): Uint8Array {
  const now = treeNow(handles) / 1000;
  const record = newRequest(
    {
      state: "requested",
      nodeTypes: [...labels],
      requestor: leaseRequestor(id),
      requestorData: { lease: id, client: owner, ...defined({ project, branch, part }) },
      eventId: hexId(handles.random),
      createdTime: now,
      ...(tenant === null ? {} : { tenantName: tenant }),
    },
    now,
  );
  return encodeRequest(record);
}

/** Writes the request's id into its lease. `version`: of the lease as it is known. */
async function noteRequest(
  { tree }: OperationHandles,
  lease: Lease,
  path: string,
  version: number,
): Promise<Lease> {
  const asked: Lease = { ...lease, request: path.slice(path.lastIndexOf("/") + 1) };
  try {
    await tree.set(leasePath(lease.id), encodeLease(asked), { version });
  } catch (error) {
    // A launcher was quicker: it found the request by its requestor, and its state of the lease is the newer one.
    if (!(error instanceof TreeError) || error.code !== "tree.bad_version") throw error;
  }
  return asked;
}

/** Whether a repeated call asks for the same. The times are not compared, as a repetition comes later, nor what the client notes. */
function isSame(a: Lease, b: Lease): boolean {
  const facts = ({ owner, labels, tenant, heartbeat, set }: Lease) =>
    JSON.stringify([owner, labels, tenant, heartbeat, set?.same]);
  return facts(a) === facts(b);
}

/**
 * Says that the client of a lease lives, or with `forMs` that it wants the nodes for so long from now, milliseconds. Returns the
 * lease as it is then. `job` and `data` replace what stands there, with `dataWas` only if the data is this. Rejects with LeaseError when it is not, and for a
 * lease that has ended: its nodes are lost, also when no launcher has taken them back yet.
 */
export async function keepLease(
  handles: OperationHandles,
  id: string,
  {
    forMs,
    dataWas,
    ...noted
  }: Pick<AskOptions, "job" | "data"> & { readonly forMs?: number; readonly dataWas?: string } = {},
): Promise<Lease> {
  const now = treeNow(handles);
  const kept = await changeLease(handles, id, (lease) => {
    const isOver = lease.state === "released" || lease.state === "failed" || lease.expires <= now;
    if (isOver) throw endedLease(id);
    const { heartbeat } = lease;
    if (dataWas !== undefined && lease.data !== dataWas)
      throw new LeaseError("lease.data_changed", `the data of lease ${id} is another by now: read it again`);
    const until = forMs === undefined ? lease.until : now + forMs;
    if (heartbeat === null) return { ...lease, ...noted, expires: until ?? lease.expires };
    return {
      ...lease,
      ...noted,
      until,
      expires: Math.min(until ?? Number.POSITIVE_INFINITY, now + heartbeat),
    };
  });
  if (kept === undefined) throw endedLease(id);
  return kept;
}

function endedLease(id: string): LeaseError {
  return new LeaseError(
    "lease.ended",
    `lease ${id} was released or has expired, and its nodes are gone: request others`,
  );
}

/**
 * Gives a lease back. Any launcher then returns its nodes. Twice, or already gone: nothing. `verdict`: what its user says of the nodes;
 * `commit`: that its job ended well, so that what it leaves in caches may serve later jobs.
 */
export async function releaseLease(
  handles: OperationHandles,
  id: string,
  {
    verdict = null,
    commit = false,
  }: { readonly verdict?: LeaseVerdict | null; readonly commit?: boolean } = {},
): Promise<"released" | "unknown"> {
  const released = await changeLease(handles, id, (lease) =>
    lease.state === "released" ? lease : { ...lease, state: "released", verdict, commit },
  );
  return released === undefined ? "unknown" : "released";
}

/**
 * Changes a lease by its version, again after each change of others. Undefined: there is no such lease. Nothing is written where
 * `next` returns the lease that it was given. What `next` throws is the caller's.
 */
async function changeLease(
  { tree }: OperationHandles,
  id: string,
  next: (lease: Lease) => Lease,
): Promise<Lease | undefined> {
  for (;;) {
    const found = await orUndefined(tree.get(leasePath(id)));
    if (found === undefined) return undefined;
    const lease = decodeLease(id, found.data);
    const changed = next(lease);
    if (changed === lease) return lease;
    try {
      await tree.set(leasePath(id), encodeLease(changed, found.data), { version: found.stat.version });
      return changed;
    } catch (error) {
      // A launcher has changed the lease, or deleted it because it expired: read it and decide again.
      if (!(error instanceof TreeError) || !["tree.bad_version", "tree.no_node"].includes(error.code))
        throw error;
    }
  }
}
