import {
  bool,
  type Field,
  isObject,
  number,
  numberOrNull,
  odd,
  oneOf,
  optional,
  strict,
  text,
  type ValuesOf,
  word,
  words,
} from "./fields.ts";
import { ownRecord } from "./own-record.ts";

/** Folder of the leases. */
export const LEASES = "/nodeyard/leases";

/**
 * waiting: its request is not fulfilled yet. gathering: the same for a mixed set, part by part; releases that know no mixed sets leave such
 * a lease alone, as a record that they cannot read. granted: a launcher holds the nodes for it. failed: no pool could serve it.
 * released: the client returned it or it expired, and its nodes are about to be returned.
 */
export const leaseStates = ["waiting", "gathering", "granted", "failed", "released"] as const;
/** A state of leaseStates. */
export type LeaseState = (typeof leaseStates)[number];

/** What the client reports about its nodes when it returns them. */
export const leaseVerdicts = ["ok", "dirty", "infra-failure"] as const;
/** A verdict of leaseVerdicts. */
export type LeaseVerdict = (typeof leaseVerdicts)[number];

/** A job of a CI, as that CI names it. */
export interface LeaseJob {
  /** The kind of CI, such as `github` or `zuul`. */
  readonly system: string;
  /** As the CI and its users know it; people look for it. */
  readonly id: string;
  readonly name: string | null;
  /** Its page, `http` or `https`. */
  readonly url: string | null;
}

/** A link of another protocol is left out, because the page makes a link of it. */
const job: Field<LeaseJob | null>["read"] = (value) => {
  if (value === null) return null;
  if (!isObject(value)) return odd;
  const { system, id, name, url } = value;
  if (typeof system !== "string" || typeof id !== "string") return odd;
  return {
    system,
    id,
    name: typeof name === "string" ? name : null,
    url: typeof url === "string" && /^https?:/.test(url) ? url : null,
  };
};

/** The nodes of one label in a mixed set: one pool serves all of them, by a request of its own. */
export interface LeasePart {
  readonly label: string;
  /** Ids of the nodes that are held for it; empty until all of them are. */
  readonly nodes: readonly string[];
  /**
   * Its request that is written: the one with this token in its `requestor_data`. `at`: tree time, milliseconds. Null: there is none. At most
   * one part of a set has one, since a part is asked for when the one before it is held.
   */
  readonly asked: { readonly token: string; readonly at: number } | null;
}

/** Of a part: it has its nodes, its request is written, or it comes later. */
export const partStates = ["held", "asked", "next"] as const;

/** The parts of a set, for people and programs. */
export function partRows({ parts }: Pick<MixedSet, "parts">) {
  return parts.map(({ label, nodes, asked }) => {
    const state: (typeof partStates)[number] = nodes.length > 0 ? "held" : asked === null ? "next" : "asked";
    return { label, state, nodes };
  });
}

/** A rule of a mixed set: its nodes of these labels agree in a fact (`factOf`). No labels: all nodes. */
export interface Pairing {
  readonly fact: string;
  readonly labels: readonly string[];
}

/** What a lease asks for from several pools (docs/design/mixed-sets.md). */
export interface MixedSet {
  /** Three digits, of its requests. */
  readonly priority: string;
  readonly project: string | null;
  readonly branch: string | null;
  readonly same: readonly Pairing[];
  /** One for each label, in the order of the lease's labels. */
  readonly parts: readonly LeasePart[];
  /** It gives back what it holds, since an older set waits for that, and then begins anew. */
  readonly yields: boolean;
}

const wordsIn = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === "string");
const orNull = (value: unknown): value is string | null => value === null || typeof value === "string";

/** Null where any of it cannot be read: a set is carried out as it was meant or not at all. */
const mixedSet: Field<MixedSet | null>["read"] = (value) => {
  if (value === null) return null;
  if (!isObject(value)) return odd;
  const { priority, project, branch, same, parts, yields } = value;
  const isWhole =
    typeof priority === "string" &&
    orNull(project) &&
    orNull(branch) &&
    typeof yields === "boolean" &&
    Array.isArray(same) &&
    same.every((one) => isObject(one) && typeof one.fact === "string" && wordsIn(one.labels)) &&
    Array.isArray(parts) &&
    parts.every(
      (one) =>
        isObject(one) &&
        typeof one.label === "string" &&
        wordsIn(one.nodes) &&
        (one.asked === null ||
          (isObject(one.asked) && typeof one.asked.token === "string" && typeof one.asked.at === "number")),
    );
  return isWhole ? (value as unknown as MixedSet) : odd;
};

const fields = {
  state: strict<LeaseState>("state", oneOf(...leaseStates)),
  /** The client, for people: user@host. */
  owner: optional("owner", "", word),
  labels: strict("labels", words),
  /** The node request of the lease; null until it is written. */
  request: optional("request", null, text),
  /** Ids of the nodes in the order of `labels`, once granted. */
  nodes: strict("nodes", words),
  /** Tree time, milliseconds. */
  created: strict("created", number),
  /** Tree time in milliseconds at which the nodes are returned in any case. */
  expires: strict("expires", number),
  /** Tenant of the request and of the nodes; null for none. */
  tenant: optional("tenant", null, text),
  /** How far ahead a heartbeat sets `expires`, in milliseconds, up to `until`; null when the lease needs no heartbeats. */
  heartbeat: optional("heartbeat", null, numberOrNull),
  /** Latest tree time in milliseconds to which heartbeats can extend the lease; null when `expires` is fixed. */
  until: optional("until", null, numberOrNull),
  /** Null when the client returned the lease without a verdict. */
  verdict: optional<LeaseVerdict | null>("verdict", null, oneOf(...leaseVerdicts)),
  /** It was released because its time was over: its client may still use its nodes. */
  expired: optional("expired", false, bool),
  /** Its client said when it returned the lease that its job ended well: what the nodes leave may serve later jobs. */
  commit: optional("commit", false, bool),
  /** Null: its client did not say. */
  job: optional("job", null, job),
  /** The memory of its client, for the client's successor; nothing here reads it. Null: none. */
  data: optional("data", null, text),
  /** Null: one pool serves all of it. */
  set: optional<MixedSet | null>("set", null, mixedSet),
  /** Why it has failed, where a launcher says more than that all pools declined; for people. */
  why: optional("why", null, text),
};
const kind = ownRecord("lease", fields);

/** The right of a client without a session of the tree to use nodes for a limited time. */
export type Lease = { readonly id: string } & ValuesOf<typeof fields>;

/** Path of a lease. */
export function leasePath(id: string): string {
  return `${LEASES}/${id}`;
}

/** Requestor of a lease's request, and data of the lock contenders that hold its nodes. */
export function leaseRequestor(id: string): string {
  return `Nodeyard:lease:${id}`;
}

/** The lease that a requestor names; undefined for any other requestor. */
export function leaseIdOf(requestor: string | null): string | undefined {
  const match = /^Nodeyard:lease:([0-9a-z-]+)$/.exec(requestor ?? "");
  return match?.[1];
}

/** `stored`: the record as read, when it is changed. Fields that a later release wrote stay byte for byte. */
export function encodeLease(lease: Lease, stored?: Uint8Array): Uint8Array {
  return kind.encode(lease, stored);
}

/** @throws RecordError for a record of another version or with invalid fields */
export function decodeLease(id: string, data: Uint8Array): Lease {
  return { id, ...kind.decode(id, data) };
}

/** All nodes that a lease has: those of a mixed set are held before it is granted. */
export function nodesOfLease({ nodes, set }: Lease): readonly string[] {
  return [...new Set([...nodes, ...(set?.parts.flatMap((part) => part.nodes) ?? [])])];
}

/**
 * Where the nodes of a part of a mixed set may be: by key of the pool (`<provider>/<pool>`) the zones, null for any. Launchers of Nodepool know
 * nothing of it.
 */
export type Places = Readonly<Record<string, readonly string[] | null>>;

/** What the request of a part says in its `requestor_data`, beside what requests of all leases say. */
export interface PartOfSet {
  readonly token: string;
  readonly places?: Places | undefined;
}

/** Of a request for a part of a mixed set; undefined for all others, also where somebody else's data looks the same. */
export function partOf({
  requestor,
  requestorData,
}: {
  readonly requestor: string | null;
  readonly requestorData: unknown;
}): PartOfSet | undefined {
  if (leaseIdOf(requestor) === undefined || !isObject(requestorData)) return undefined;
  const { part } = requestorData;
  if (!isObject(part) || typeof part.token !== "string") return undefined;
  const { token, places } = part;
  const isReadable =
    isObject(places) && Object.values(places).every((zones) => zones === null || wordsIn(zones));
  return { token, ...(isReadable && { places: places as Places }) };
}

/**
 * The client that a request or node is for: the owner of its lease, or else its requestor. `data`: the request's `requestorData`, or the
 * node's `userData`, into which launchers copy it, because the lease's request is gone when its nodes are in use.
 */
export function clientOf(requestor: string | null, data: unknown): string | null {
  if (leaseIdOf(requestor) === undefined || !isObject(data)) return requestor;
  return typeof data.client === "string" ? data.client : requestor;
}

/** What launchers copy from the request of a lease to its nodes, as their `userData`; null for other requests, whose requestors write there. */
export function leaseData(request: {
  readonly requestor: string | null;
  readonly requestorData: unknown;
}): unknown {
  return leaseIdOf(request.requestor) === undefined ? null : request.requestorData;
}
