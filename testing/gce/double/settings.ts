/** What a test changes of the double's cloud. Times are milliseconds. */
export interface GceSettings {
  /** From an insert until the machine runs. */
  readonly startMs: number;
  /** From a deletion until the machine is gone. */
  readonly stopMs: number;
  /** From a call until its operation is done, for what is neither of these. */
  readonly operationMs: number;
  /** Until a new machine is in lists. One that is asked for by its name is there at once. */
  readonly unseenMs: number;
  /** Machines at once, by zone, type and market; the first that fits counts. Beyond it operations end without resources. */
  readonly capacity: readonly {
    readonly zone?: string;
    readonly type?: string;
    readonly spot?: boolean;
    readonly most: number;
  }[];
  /** Limits by metric of the region, and of the project (`CPUS_ALL_REGIONS`). */
  readonly quotas: Readonly<Record<string, number>>;
  /** Calls per minute, which are refilled when a minute of the wall clock begins. */
  readonly perMinute: Readonly<Partial<Record<"read" | "write" | "list" | "operations", number>>>;
  /** Of a list at most, as if it had been asked for. */
  readonly pageSize: number;
  /** Machine types whose sizes an answer lacks. */
  readonly unsized: readonly string[];
  /** `wait` answers after this at the latest. Google's is two minutes, and less under load, down to nothing. */
  readonly waitMs: number;
  readonly faults: readonly GceFault[];
}

/** What happens to calls in place of their answer. */
export interface GceFault {
  /** `instances.insert`; `PUT object?uploadId` of Cloud Storage; `token`; `*`: every call of the API. */
  readonly call: string;
  /** Default 1. */
  readonly times?: number;
  /** Calls that pass before. Default 0. */
  readonly after?: number;
  /**
   * refuse: an error, and nothing happened; drop: the connection ends and nothing happened; drop-answer: it happened; silence: no answer comes,
   * and nothing happened; empty: a list has nothing; unreachable: a list says that it lacks zones; fail: the operation ends with the error;
   * page: a proxy answers, with 404, or with 302 and nothing.
   */
  readonly how: ("refuse" | "drop" | "drop-answer" | "silence" | "empty" | "unreachable" | "fail") | "page";
  /** Of the answer. Default 503. */
  readonly status?: number;
  /** Of the answer's error, or the code of the operation's. */
  readonly reason?: string;
  readonly message?: string;
}

export const DEFAULTS: GceSettings = {
  startMs: 3_000,
  stopMs: 2_000,
  operationMs: 500,
  unseenMs: 0,
  capacity: [],
  quotas: {
    CPUS: 2_400,
    N2_CPUS: 500,
    PREEMPTIBLE_CPUS: 0,
    INSTANCES: 2_400,
    IN_USE_ADDRESSES: 2_300,
    SSD_TOTAL_GB: 81_920,
    DISKS_TOTAL_GB: 81_920,
    CPUS_ALL_REGIONS: 5_000,
  },
  perMinute: {},
  pageSize: 500,
  unsized: [],
  waitMs: 120_000,
  faults: [],
};
