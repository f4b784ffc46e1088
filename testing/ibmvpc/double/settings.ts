/** What a test changes of the double's cloud. Times are milliseconds. */
export interface IbmSettings {
  /** From the request until a machine runs, or has failed. */
  readonly startMs: number;
  /** From a deletion until the machine is gone. */
  readonly stopMs: number;
  /** From the request until an image can be booted. */
  readonly importMs: number;
  /** Until something new is in lists. What is asked for by its id is there at once. */
  readonly unseenMs: number;
  /** Machines at once, by zone, profile and market; the first that fits counts. Beyond it they fail, long after the call was answered. */
  readonly capacity: readonly {
    readonly zone?: string;
    readonly profile?: string;
    readonly spot?: boolean;
    readonly most: number;
  }[];
  /** What the account may have, by what IBM calls it. */
  readonly quotas: Readonly<Partial<Record<"instances" | "vcpu" | "floating_ips", number>>>;
  /** Calls at once, and those that come back each second; beyond that 429. */
  readonly bucket: readonly [number, number] | null;
  /** Of a list at most, whatever is asked for. */
  readonly pageSize: number;
  /** Every new machine fails by this reason. */
  readonly failure: { readonly code: string; readonly message: string } | null;
  readonly faults: readonly IbmFault[];
}

/** What happens to calls in place of their answer. */
export interface IbmFault {
  /** Method and path without ids: `POST instances`, `DELETE instances/*`; `POST token`, `PUT objects/*`; `*`: each call but logins. */
  readonly call: string;
  /** Default 1. */
  readonly times?: number;
  /** Calls that pass before. Default 0. */
  readonly after?: number;
  /**
   * refuse: an error, and nothing happened; drop: the connection ends and nothing happened; drop-answer: it happened; silence: no answer comes,
   * and nothing happened; empty: a list has nothing; loop: a page names itself as the next one, at another host; nowhere: one says that more
   * follows, and not from where; page: a proxy answers.
   */
  readonly how: "refuse" | "drop" | "drop-answer" | "silence" | "empty" | "loop" | "nowhere" | "page";
  /** Of the answer. Default 503; of a proxy 404. */
  readonly status?: number;
  readonly code?: string;
  readonly message?: string;
}

export const DEFAULTS: IbmSettings = {
  ...{ startMs: 3_000, stopMs: 2_000, importMs: 5_000, unseenMs: 0, capacity: [], quotas: {} },
  ...{ bucket: null, pageSize: 100, failure: null, faults: [] },
};
