import { text } from "./fields.ts";
import { number, numberOrNull, oneOf, optional, ownRecord, strict, word, words } from "./own-record.ts";

/** Where leases are kept. */
export const LEASES = "/nodeyard/leases";

/**
 * waiting: its request is not fulfilled yet. granted: the nodes are held for it. failed: no pool could serve it.
 * released: its owner gave it back, or it has expired, and its nodes are about to be returned.
 */
export type LeaseState = "waiting" | "granted" | "failed" | "released";

/** What the user of nodes says of them when it gives them back. */
export const leaseVerdicts = ["ok", "dirty", "infra-failure"] as const;
/** A verdict of leaseVerdicts. */
export type LeaseVerdict = (typeof leaseVerdicts)[number];

/** The right of a client without a tree session to use nodes until a point in time. */
export interface Lease {
  readonly id: string;
  readonly state: LeaseState;
  /** Who asked, for people: user@host. */
  readonly owner: string;
  readonly labels: readonly string[];
  /** The node request it was made with; null until that is written. */
  readonly request: string | null;
  /** In the order of `labels`, once granted. */
  readonly nodes: readonly string[];
  /** Tree time, milliseconds. */
  readonly created: number;
  /** Tree time, milliseconds, at which the nodes are returned whatever happens. */
  readonly expires: number;
  /** Of its request and nodes; null: none. */
  readonly tenant: string | null;
  /** A heartbeat sets `expires` this far ahead, milliseconds, but not beyond `until`; null: it needs none. */
  readonly heartbeat: number | null;
  /** Tree time, milliseconds, that heartbeats lead to at most; null: `expires` is fixed. */
  readonly until: number | null;
  /** Null: it was not given back with one. */
  readonly verdict: LeaseVerdict | null;
}

const kind = ownRecord<Omit<Lease, "id">>("lease", {
  state: strict("state", oneOf("waiting", "granted", "failed", "released")),
  owner: optional("owner", "", word),
  labels: strict("labels", words),
  request: optional("request", null, text),
  nodes: strict("nodes", words),
  created: strict("created", number),
  expires: strict("expires", number),
  tenant: optional("tenant", null, text),
  heartbeat: optional("heartbeat", null, numberOrNull),
  until: optional("until", null, numberOrNull),
  verdict: optional("verdict", null, oneOf(...leaseVerdicts)),
});

/** Where a lease is. */
export function leasePath(id: string): string {
  return `${LEASES}/${id}`;
}

/** Requestor of a lease's request, and identifier of the contenders that hold its nodes. */
export function leaseRequestor(id: string): string {
  return `Nodeyard:lease:${id}`;
}

/** The lease that a requestor stands for; undefined when it is somebody else. */
export function leaseIdOf(requestor: string | null): string | undefined {
  const match = /^Nodeyard:lease:([0-9a-z-]+)$/.exec(requestor ?? "");
  return match?.[1];
}

/** `stored`: the record as it was read, of one that is changed. What a later release wrote into it stays, byte for byte. */
export function encodeLease(lease: Lease, stored?: Uint8Array): Uint8Array {
  return kind.encode(lease, stored);
}

/** @throws RecordError for a record that is not a lease of a version that this release reads */
export function decodeLease(id: string, data: Uint8Array): Lease {
  return { id, ...kind.decode(id, data) };
}
