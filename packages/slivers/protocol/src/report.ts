import type { Loan, SliverSpec, SliverVolume } from "./document.ts";
import type { Rspec } from "./grammar.ts";

/** Why a loan in a lender's list is not in force. */
export type LoanRefusal = "absent" | "generation" | "ended" | "not-loanable" | "floor";

/** A loan, and whether it is in force. */
export interface LoanStatus extends Loan {
  readonly honoured: boolean;
  readonly refusal?: LoanRefusal;
}

/** State of a sliver on its machine. `broken`: an operation was interrupted, and the sliver is created again. */
export type Phase = "absent" | "created" | "running" | "stopped" | "broken";

/**
 * Usage of a sliver since its start. Bytes: `memory` (now), `memoryPeak`, `disk` (its own data), `ioRead`,
 * `ioWritten`. Operations: `ioReadOps`, `ioWriteOps`. Milliseconds: `cpu`, and `throttled` (time in which its CPU cap delayed it). Per mille of one
 * CPU: `cpuNow`, on average since its usage was read before. Processes and threads: `pids`, and
 * `pidsRefused`, how often a further one was refused. Percent of the last ten seconds in which a task of it waited: `cpuPressure`,
 * `memoryPressure`, `ioPressure`.
 */
export type UsageKey =
  | "memory"
  | "memoryPeak"
  | "cpu"
  | "cpuNow"
  | "throttled"
  | "pids"
  | "pidsRefused"
  | "disk"
  | "ioRead"
  | "ioWritten"
  | "ioReadOps"
  | "ioWriteOps"
  | "cpuPressure"
  | "memoryPressure"
  | "ioPressure";
/** Values that the machine does not measure are absent; cgroup v1 measures fewer. */
export type SliverUsage = Readonly<Partial<Record<UsageKey, number>>>;

/** A copy of a cache in a sliver, and how it began. */
export interface VolumeReport extends Pick<SliverVolume, "name" | "path" | "size" | "key" | "commit"> {
  /** Bytes of the cache that it is a copy of; absent: it began empty. */
  readonly from?: number;
  /** Why it began empty. */
  readonly why?: string;
}

/** A cache of a machine. Times are seconds since the Unix epoch. */
export interface CacheReport {
  /** Digest of name and key. */
  readonly id: string;
  readonly name: string;
  readonly key: readonly string[];
  readonly bytes: number;
  /** When it began empty, and when and by which sliver its present version was left. */
  readonly began: number;
  readonly committed: number;
  readonly by: string;
  readonly used: number;
  /** Slivers that began with a copy of it. */
  readonly hits: number;
  /** Versions that another one replaced which did not come of them: two slivers began with the same. */
  readonly lost: number;
  /** It stays, whatever room others need. */
  readonly pinned: boolean;
}

/** A sliver as its manager sees it. */
export interface SliverReport {
  readonly name: string;
  readonly generation: number;
  readonly incarnation: number;
  readonly index?: number;
  readonly phase: Phase;
  /** Its document holds it: what runs in it is suspended. Absent: it is not held. */
  readonly held?: true;
  /** The operation in progress. */
  readonly doing?: string;
  /** The last failure, until the operation succeeds. */
  readonly error?: { readonly code: string; readonly message: string; readonly attempts: number };
  /** Parts of the rspec that the machine cannot enforce. */
  readonly unenforced: readonly string[];
  /** Classes of its devices, as its document names them. Absent: it has none. */
  readonly devices?: readonly string[];
  /** Absent: it has none. */
  readonly volumes?: readonly VolumeReport[];
  /** The rspec of the document, and the effective rspec after loans. */
  readonly rspec: Rspec;
  readonly effective: Rspec;
  readonly loans: readonly LoanStatus[];
  /**
   * True when the machine was examined after the last change of the document and of loans, is as this sliver requires, and no operation is
   * in progress. Absent: the manager does not report it.
   */
  readonly settled?: boolean;
  /** Processes that the kernel killed since the sliver was made because its memory was full. Absent: none, or not measured. */
  readonly memoryKills?: number;
  /** Digest of the version of its image, if that was on trial when the sliver was made. Absent: it was not. */
  readonly triedVersion?: string;
  /** Usage, half a minute old at most. Absent: the sliver does not run, or usage is not measured. */
  readonly usage?: SliverUsage;
  /** Why the sliver has less than its amounts say, for operators. Absent: it has all of them. */
  readonly throttled?: string;
  /** Tags from the document. */
  readonly tags: Readonly<Record<string, string>>;
  /** Address of the sliver's own SSH server, once it has one. */
  readonly login?: {
    readonly user: string;
    /** Reachable only from its own machine. */
    readonly address: string;
    readonly port: number;
    /** Port of the machine that is forwarded to the sliver. */
    readonly published?: number;
  };
}

/** A sliver without a login that waits for a document, which then gets it at once. */
export interface SpareReport {
  readonly phase: Phase;
  /** Absent: the machine's default image. */
  readonly image?: string;
  readonly nesting?: boolean;
}

/** A sliver of the last document that the manager refused. */
export interface Refusal {
  readonly name?: string;
  readonly code: "malformed" | "capacity" | "stale" | "duplicate" | "instantiation";
  readonly reason: string;
}

/** A sliver that has ended and some of whose processes the kernel had killed because its memory was full. */
export interface KilledSliver {
  readonly name: string;
  readonly generation: number;
  readonly memoryKills: number;
  /** Its memory cap in KiB; 0: it had no cap of its own. */
  readonly memoryCap: number;
}

/** A new version of an image of slivers that is tried, or was tried last. */
export interface ImageTrial {
  readonly image: string;
  /** Digest of its root. */
  readonly version: string;
  /** `dropped`: its source had another version before the trial ended. */
  readonly verdict: "on-trial" | "promoted" | "rolled-back" | "dropped";
  readonly why: string;
  /** When the trial began, or ended; milliseconds since the Unix epoch. */
  readonly at: number;
}

/** The manager's answer to a document and to `Status`. */
export interface NodeReport {
  readonly node: string;
  readonly appliedEpoch: number;
  readonly appliedVersion: number;
  /** Writer of the applied document. */
  readonly writer?: string;
  /** The store was lost or is unreadable: nothing is destroyed until a complete document has arrived. */
  readonly safeMode: boolean;
  /** The wall clock jumped: nothing expires until the clock is trusted again. */
  readonly clockSuspect: boolean;
  readonly keySet: number;
  readonly capacity: Readonly<Record<string, number>>;
  readonly refused: readonly Refusal[];
  readonly slivers: readonly SliverReport[];
  /** Why the manager cannot examine its machine, and the number of failed tries in a row. Slivers are not changed meanwhile. */
  readonly trouble?: { readonly message: string; readonly attempts: number };
  /** Disk limits do not hold until its file system has counted again what slivers use; no sliver is made meanwhile. Absent: they hold. */
  readonly counting?: true;
  /**
   * Operations of the manager on files that have waited for half a minute: each takes one of the few threads for them. Absent: none.
   */
  readonly waitingThreads?: number;
  /** Why the last document was not carried out: it would end most slivers without saying that this is intended. */
  readonly withheld?: string;
  /** Names of slivers on the machine that are in no record. They are being ended, unless the store was lost. */
  readonly unlisted: readonly string[];
  /** Absent: the machine keeps none, or knows no kind yet. */
  readonly spares?: readonly SpareReport[];
  /** The most recent ones since the manager started. Absent: none. */
  readonly killed?: readonly KilledSliver[];
  /** Absent: it has no cache. */
  readonly caches?: readonly CacheReport[];
  /** Absent: no image has a new version, or new versions are not tried. */
  readonly images?: readonly ImageTrial[];
  /** Changes each time the machine was examined. `Watch` takes it and answers when there is a new report. */
  readonly sequence: number;
}

/** The present content of a node as one document: the last document, and what tickets have added since. */
export interface NodeDocument {
  readonly node: string;
  /** 0: no signed document has arrived yet. */
  readonly epoch: number;
  readonly version: number;
  readonly writer?: string;
  readonly safeMode: boolean;
  /** A document that ends many slivers must say so (`removes`). Absent: the manager is older and refuses that field. */
  readonly guarded?: true;
  /** As in a report. After a lost store, a complete document would end these slivers. */
  readonly unlisted: readonly string[];
  /** Without loans, which stay unchanged when a document does not list them. */
  readonly slivers: readonly SliverSpec[];
  /** The list of loans of each lender. Absent: the manager is older than this field. */
  readonly loans?: Readonly<Record<string, readonly Loan[]>>;
}
