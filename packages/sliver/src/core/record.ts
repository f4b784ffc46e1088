import type { Delegation, KeySet, Loan, Refusal, Rspec, SliverSpec } from "@nodeyard/sliver-protocol";
import type { Traffic } from "./traffic.ts";

/**
 * Orders documents. Signed documents have the epoch of their writer and a number that grows; those of PLC have epoch 0
 * and their timestamp, so that the first signed document ends the reign of timestamps for good.
 */
export interface Version {
  readonly epoch: number;
  readonly number: number;
}

/** Older than every document. */
export const NO_VERSION: Version = { epoch: 0, number: 0 };

/** Negative when `a` is older than `b`. */
export function compareVersions(a: Version, b: Version): number {
  return a.epoch - b.epoch || a.number - b.number;
}

/** A version as operators read it: `epoch.number`, or PLC's timestamp alone. */
export function versionText({ epoch, number }: Version): string {
  return epoch === 0 ? String(number) : `${epoch}.${number}`;
}

/** How a sliver comes to be (docs/contract/slivers.md, "GetSlivers"). */
export type Instantiation = SliverSpec["instantiation"];

/** What the writer of documents says of an account. */
export interface Given {
  readonly name: string;
  readonly stamp: Version;
  readonly generation: number;
  /** A controller is an account that only calls: it has no machine and no resources. */
  readonly kind: "sliver" | "controller";
  readonly instantiation: Instantiation;
  /** Seconds since the Unix epoch. */
  readonly expiresAt?: number;
  readonly keys: readonly string[];
  readonly image?: string;
  readonly initscript: string;
  readonly nesting?: boolean;
  readonly delegations: readonly Delegation[];
  readonly rspec: Rspec;
  readonly sliceId?: number;
  /** The writer's own notes. */
  readonly tags?: Readonly<Record<string, string>>;
  /** Tags of PLC that mean nothing to us, as they came. */
  readonly attributes?: Readonly<Record<string, string>>;
}

/** What this node adds to it; the old underscore keys. It survives updates of the record, and dies with the incarnation. */
export interface Local {
  /** Never used twice on a node. */
  readonly incarnation: number;
  /** Users, paths, ids and rules derive from it alone. Given when the sliver is first made. */
  readonly index?: number;
  /** Insertion into a lost store: a sliver of that name and generation that is found is this one. */
  readonly adopt?: true;
  /** What Create (true) and Destroy (false) asked of a delegated sliver. */
  readonly desired?: boolean;
  /** Stop was called, and no Start since. */
  readonly stopped?: boolean;
  readonly loans: readonly Loan[];
}

/** All that a node stores of one account. */
export interface SliverRecord extends Given {
  readonly local: Local;
}

/** A record as a document brings it. `loans` replaces the lender's list when it is there. */
export interface Incoming extends Given {
  readonly loans?: readonly Loan[];
}

/** All that a node must not forget. */
export interface State {
  /** Of the last full document; what is older is stale. */
  readonly minimum: Version;
  /** Of the last full document's text; empty: none yet. */
  readonly digest: string;
  /** Of the last full document; undefined where it names none. */
  readonly writer?: string;
  /** The store was lost: nothing is destroyed before a full document came. */
  readonly safe: boolean;
  readonly nextIncarnation: number;
  readonly keySet: KeySet | undefined;
  /** Used tickets: `jti` and the second from which it need not be remembered. */
  readonly usedTickets: ReadonlyMap<string, number>;
  /** The highest of these seconds of all that were forgotten: what ends by then may be one of them. */
  readonly ticketsForgotten: number;
  /** The trusted time when it was last stored, seconds since the Unix epoch; 0: never. */
  readonly believed: number;
  /** What the last full document asked for and did not get. */
  readonly refused: readonly Refusal[];
  readonly records: ReadonlyMap<string, SliverRecord>;
  /** What each name has sent in its day. */
  readonly traffic: ReadonlyMap<string, Traffic>;
}

/** Of a node without a store: safe, since a store may have been there. */
export const EMPTY_STATE: State = {
  minimum: { epoch: 0, number: 0 },
  digest: "",
  safe: true,
  nextIncarnation: 1,
  keySet: undefined,
  usedTickets: new Map(),
  ticketsForgotten: 0,
  believed: 0,
  refused: [],
  records: new Map(),
  traffic: new Map(),
};

/** Copy of `state` with one record's local part changed. */
export function withLocal(state: State, name: string, change: Partial<Local>): State {
  const record = state.records.get(name);
  if (record === undefined) return state;
  const records = new Map(state.records);
  records.set(name, { ...record, local: { ...record.local, ...change } });
  return { ...state, records };
}
