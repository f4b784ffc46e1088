/** What a test can change, with what holds without it: a subscription in which everything works at once. */
export interface AzureSettings {
  /** Milliseconds until a machine is made, and until one is gone. */
  readonly bootMs: number;
  readonly deletionMs: number;
  /** Milliseconds until an operation on a disk or an image ends. */
  readonly operationMs: number;
  /** Milliseconds by which lists lag. */
  readonly lagMs: number;
  readonly pageSize: number;
  /** Lists have no machine, though machines are there. */
  readonly hidesMachines: boolean;
  /** Room by zone, size and market; what no entry names is without limit. */
  readonly capacity: readonly {
    readonly zone?: string;
    readonly size?: string;
    readonly market?: "Regular" | "Spot";
    readonly most: number;
    /** Azure accepts the request, and gives up later. */
    readonly late?: boolean;
  }[];
  /** Limits by Azure's names of quotas, over those of `QUOTAS`. */
  readonly quotas: Readonly<Record<string, number>>;
  /** Use of quotas by others in the subscription. */
  readonly others: Readonly<Record<string, number>>;
  /** Token buckets as Azure's: calls at once, and those that come back each second. */
  readonly buckets: Readonly<Partial<Record<"reads" | "writes" | "deletes", readonly [number, number]>>>;
  readonly faults: readonly Fault[];
  /** Machines fail with this code after they were made. */
  readonly failure: { readonly code: string; readonly message: string } | null;
  /** Sizes, zones and locations that the subscription may not use. */
  readonly restrictions: readonly { readonly size: string; readonly zone?: string }[];
}

/** What happens to calls. */
export interface Fault {
  /** "PUT virtualMachines"; the type of a list is that of its members. */
  readonly call: string;
  readonly status?: number;
  readonly code?: string;
  readonly message?: string;
  readonly retryAfter?: number;
  /** Default: without end. */
  readonly times?: number;
  /**
   * drop: nothing happened, and the connection ends; drop-answer: it happened; silence: no answer comes; page: something between the client
   * and Azure answers with a page of HTML.
   */
  readonly how?: "error" | "drop" | "drop-answer" | "silence" | "page";
}

export const DEFAULTS: AzureSettings = {
  ...{ bootMs: 0, deletionMs: 0, operationMs: 0, lagMs: 0, pageSize: 50, hidesMachines: false },
  ...{ capacity: [], quotas: {}, others: {}, buckets: {}, faults: [], failure: null, restrictions: [] },
};

/** Limits of a new subscription, by Azure's names. */
export const QUOTAS: Readonly<Record<string, number>> = {
  cores: 350,
  virtualMachines: 25_000,
  lowPriorityCores: 100,
  standardDSv5Family: 200,
  standardBsFamily: 50,
};

/** Sizes by name, as Azure describes them. */
export const SIZES: Readonly<
  Record<string, { readonly family: string; readonly vcpus: number; readonly gib: number }>
> = {
  Standard_D2s_v5: { family: "standardDSv5Family", vcpus: 2, gib: 8 },
  Standard_D4s_v5: { family: "standardDSv5Family", vcpus: 4, gib: 16 },
  Standard_B1ls: { family: "standardBsFamily", vcpus: 1, gib: 0.5 },
};
/** Some of the versions of the API that Azure serves, of types that have their own and of the services. */
export const VERSIONS: Readonly<Record<string, readonly string[]>> = {
  disks: ["2020-06-30", "2023-04-02", "2023-10-02", "2024-03-02", "2025-01-02", "2026-03-02"],
  skus: ["2017-03-30", "2017-09-01", "2019-04-01", "2021-07-01"],
  "Microsoft.Compute": [
    "2020-12-01",
    "2023-03-01",
    "2023-09-01",
    "2024-03-01",
    "2024-07-01",
    "2024-11-01",
    "2025-04-01",
    "2026-04-01",
  ],
  "Microsoft.Network": [
    "2020-07-01",
    "2020-11-01",
    "2023-11-01",
    "2024-01-01",
    "2024-03-01",
    "2024-05-01",
    "2024-07-01",
    "2024-10-01",
    "2026-03-01",
  ],
};
export const ZONES = ["1", "2", "3"];
