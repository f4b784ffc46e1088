import type { KeySet, Loan, Refusal, Rspec, SliverSpec } from "@nodeyard/sliver-protocol";

/** The members of T, which nobody changes, nor what is in their lists. */
type ReadonlyLists<T> = {
  readonly [K in keyof T]: T[K] extends (infer E)[] | undefined ? readonly E[] | Exclude<T[K], E[]> : T[K];
};

/**
 * Orders documents. Signed documents have the epoch of their writer and an increasing number. Documents of PLC have epoch 0 and their
 * timestamp, so that after the first signed document no document of PLC is accepted.
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

/** A version for operators: `epoch.number`, or PLC's timestamp. */
export function versionText({ epoch, number }: Version): string {
  return epoch === 0 ? String(number) : `${epoch}.${number}`;
}

/** The members of a sliver of a document (document.ts of the protocol describes them) that its record has unchanged. */
type Unchanged = Omit<SliverSpec, "held" | "expiresAt" | "rspec" | "loans" | "tags">;

/** The part of a record that comes from documents. */
export interface Given extends ReadonlyLists<Unchanged> {
  readonly stamp: Version;
  /** A controller is an account that only makes calls. It has no sliver and no resources. */
  readonly kind: "sliver" | "controller";
  /** Seconds since the Unix epoch. */
  readonly expiresAt?: number;
  /** Suspended: its processes stop where they are and keep their memory, and it is not started. Default false. */
  readonly held?: boolean;
  readonly rspec: Rspec;
  readonly sliceId?: number;
  /** Notes of the writer. */
  readonly tags?: Readonly<Record<string, string>>;
  /** Tags of PLC that Nodeyard does not use, unchanged. */
  readonly attributes?: Readonly<Record<string, string>>;
}

/**
 * The traffic of a sliver in its day, which begins when it is first seen and lasts 24 hours (docs/contract/slivers.md, "Daily traffic").
 */
export interface Traffic {
  /** The generation to which the day belongs: the next client of a name starts a new day. 0 for documents without generations. */
  readonly generation: number;
  /** Seconds since the Unix epoch. */
  readonly began: number;
  /** Bytes sent, up to the time when the interface's counter was `counter`. */
  readonly used: number;
  /** Number of the interface. Each start makes a new one, whose counter is 0. */
  readonly cable: number;
  readonly counter: number;
}

/**
 * The part of a record that this node adds (the old manager's keys with an underscore). It survives updates and ends with the incarnation.
 */
export interface Local {
  /** Never used twice on a node. */
  readonly incarnation: number;
  /** Users, paths, ids and rules are derived from it alone. Assigned when the sliver is first made. */
  readonly index?: number;
  /** Devices that it has for itself, given with the index: a sliver keeps them as long as it is there. */
  readonly devices?: readonly string[];
  /** The record was inserted into a lost store: a sliver of the same name and generation on the machine is adopted. */
  readonly adopt?: true;
  /** The last request for a delegated sliver: Create (true) or Destroy (false). */
  readonly desired?: boolean;
  /** Stop was called, and Start was not called since. */
  readonly stopped?: boolean;
  readonly loans: readonly Loan[];
}

/** The complete record of an account. */
export interface SliverRecord extends Given {
  readonly local: Local;
}

/** A record from a document. `loans`, if present, replaces the lender's list. */
export interface Incoming extends Given {
  readonly loans?: readonly Loan[] | undefined;
}

/** The stored state of a node. */
export interface State {
  /** Version of the last complete document. Older documents are stale. */
  readonly minimum: Version;
  /** Digest of the last complete document's text; empty before the first. */
  readonly digest: string;
  /** Writer of the last complete document; undefined when it names none. */
  readonly writer?: string;
  /** The store was lost: nothing is destroyed until a complete document has arrived. */
  readonly safe: boolean;
  readonly nextIncarnation: number;
  readonly keySet: KeySet | undefined;
  /** Used tickets: `jti`, and the second until which it must be remembered. */
  readonly usedTickets: ReadonlyMap<string, number>;
  /** The highest such second among forgotten tickets. A ticket that ends by then may have been used. */
  readonly ticketsForgotten: number;
  /** The trusted time at the last store, seconds since the Unix epoch; 0: never stored. */
  readonly believed: number;
  /** Parts of the last complete document that were refused. */
  readonly refused: readonly Refusal[];
  readonly records: ReadonlyMap<string, SliverRecord>;
  /** Slivers that no document asks for yet, the oldest first. */
  readonly spares: readonly SliverRecord[];
  /** The traffic of each name in its day. */
  readonly traffic: ReadonlyMap<string, Traffic>;
}

/** State of a node without a store. `safe`, because a store may have been lost. */
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
  spares: [],
  traffic: new Map(),
};

/** A copy of `state` with a change of one record's local part. */
export function withLocal(state: State, name: string, change: Partial<Local>): State {
  const record = state.records.get(name);
  if (record === undefined) return state;
  const records = new Map(state.records);
  records.set(name, { ...record, local: { ...record.local, ...change } });
  return { ...state, records };
}
