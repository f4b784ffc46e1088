/** Milliseconds; each call takes a time in between, drawn from the cloud's seed. Both 0: no timer at all. */
export interface Latency {
  readonly minMs: number;
  readonly maxMs: number;
}

/** Shares of calls, 0 to 1, that fail in a way that the next call may not. */
export interface ErrorRates {
  readonly create: number;
  readonly delete: number;
  readonly find: number;
  readonly list: number;
}

/** Calls that fail from now on, counted down by each; Infinity: always. */
export interface FaultCounts {
  /** A create that raises, nothing made. */
  readonly createFails: number;
  /** A create that raises although the machine was made, as a lost reply does. */
  readonly createFailsWithExternalId: number;
  /** A machine that stays in BUILD. */
  readonly neverActive: number;
  /** A machine that ends in ERROR. */
  readonly endsInError: number;
  /** A delete that raises. */
  readonly deleteFails: number;
  /** A delete after which the machine stays listed, its status DELETED. */
  readonly deleteLeavesRecord: number;
}

/** How a fake cloud behaves. Everything has a value here; `instant` is the default of each. */
export interface FakeKnobs {
  readonly seed: number;
  /** What the credential may use; absent names are unlimited. */
  readonly quota: { readonly instances?: number; readonly cores?: number; readonly ram?: number };
  readonly availabilityZones: readonly string[];
  /** Machines that a zone has room for; a zone that is not named has room for all. */
  readonly capacity: Readonly<Record<string, number>>;
  readonly latency: {
    /** From the call to the cloud's answer. */
    readonly create: Latency;
    /** From the answer to ACTIVE. */
    readonly boot: Latency;
    readonly delete: Latency;
    /** find, list and quota. */
    readonly read: Latency;
  };
  /** Whether a create that is repeated with its tag makes a second machine, as clouds do that know no idempotency tokens. */
  readonly repeatsCreates: boolean;
  readonly errors: ErrorRates;
  readonly faults: FaultCounts;
  /** For this long after a create or delete, find and list may still show the state before it, milliseconds. */
  readonly consistencyDelayMs: number;
}

const NONE: Latency = { minMs: 0, maxMs: 0 };

/** No delay, no faults, the old fake's quota (20 instances, 100 cores, 1,000,000 MiB) and zones. */
export const INSTANT: FakeKnobs = {
  seed: 1,
  quota: { instances: 20, cores: 100, ram: 1_000_000 },
  availabilityZones: ["az1", "az2"],
  capacity: {},
  latency: { create: NONE, boot: NONE, delete: NONE, read: NONE },
  repeatsCreates: false,
  errors: { create: 0, delete: 0, find: 0, list: 0 },
  faults: {
    createFails: 0,
    createFailsWithExternalId: 0,
    neverActive: 0,
    endsInError: 0,
    deleteFails: 0,
    deleteLeavesRecord: 0,
  },
  consistencyDelayMs: 0,
};
