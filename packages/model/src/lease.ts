import { number, numberOrNull, oneOf, optional, strict, text, type ValuesOf, word, words } from "./fields.ts";
import { ownRecord } from "./own-record.ts";

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

const fields = {
  state: strict<LeaseState>("state", oneOf("waiting", "granted", "failed", "released")),
  /** Who asked, for people: user@host. */
  owner: optional("owner", "", word),
  labels: strict("labels", words),
  /** The node request it was made with; null until that is written. */
  request: optional("request", null, text),
  /** In the order of `labels`, once granted. */
  nodes: strict("nodes", words),
  /** Tree time, milliseconds. */
  created: strict("created", number),
  /** Tree time, milliseconds, at which the nodes are returned whatever happens. */
  expires: strict("expires", number),
  /** Of its request and nodes; null: none. */
  tenant: optional("tenant", null, text),
  /** A heartbeat sets `expires` this far ahead, milliseconds, but not beyond `until`; null: it needs none. */
  heartbeat: optional("heartbeat", null, numberOrNull),
  /** Tree time, milliseconds, that heartbeats lead to at most; null: `expires` is fixed. */
  until: optional("until", null, numberOrNull),
  /** Null: it was not given back with one. */
  verdict: optional<LeaseVerdict | null>("verdict", null, oneOf(...leaseVerdicts)),
};
const kind = ownRecord("lease", fields);

/** The right of a client without a tree session to use nodes until a point in time. */
export type Lease = { readonly id: string } & ValuesOf<typeof fields>;

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
