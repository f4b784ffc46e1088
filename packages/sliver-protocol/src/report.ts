import type { Loan, SliverSpec } from "./document.ts";
import type { Rspec } from "./grammar.ts";

/** Why a loan of a lender's list is not in force. */
export type LoanRefusal = "absent" | "generation" | "ended" | "not-loanable" | "floor";

/** A loan, and whether it is in force. */
export interface LoanStatus extends Loan {
  readonly honoured: boolean;
  readonly refusal?: LoanRefusal;
}

/** What a sliver is on its machine; `broken`: a step was interrupted, and it is created again. */
export type Phase = "absent" | "created" | "running" | "stopped" | "broken";

/**
 * What is counted of a sliver since its start. Bytes: `memory` (now), `memoryPeak`, `ioRead`, `ioWritten`. Milliseconds: `cpu`, and
 * `throttled`, in which its cap of CPU held it back. Processes and threads: `pids`, and how often one more was refused, `pidsRefused`.
 * Percent of the last ten seconds in which something of it waited: `cpuPressure`, `memoryPressure`, `ioPressure`.
 */
export type UsageKey =
  | "memory"
  | "memoryPeak"
  | "cpu"
  | "throttled"
  | "pids"
  | "pidsRefused"
  | "ioRead"
  | "ioWritten"
  | "cpuPressure"
  | "memoryPressure"
  | "ioPressure";
/** What the machine does not count is absent; cgroup v1 counts less. */
export type SliverUsage = Readonly<Partial<Record<UsageKey, number>>>;

/** One sliver as its manager sees it. */
export interface SliverReport {
  readonly name: string;
  readonly generation: number;
  readonly incarnation: number;
  readonly index?: number;
  readonly phase: Phase;
  /** What is being done to it now. */
  readonly doing?: string;
  /** The last thing that failed, until it works. */
  readonly error?: { readonly code: string; readonly message: string; readonly attempts: number };
  /** What the machine cannot enforce of the rspec. */
  readonly unenforced: readonly string[];
  /** What its document gives it; loans make of it what is in force, `effective`. */
  readonly rspec: Rspec;
  readonly effective: Rspec;
  readonly loans: readonly LoanStatus[];
  /**
   * True when the machine, looked at since the last change of its document or of a loan, is as this sliver is to be, and nothing is
   * being done to it. Absent: this manager does not say.
   */
  readonly settled?: boolean;
  /** Processes that the kernel killed since it was made because its memory was full. Absent: none, or nobody counts. */
  readonly memoryKills?: number;
  /** As it was some seconds ago. Absent: it does not run, or nobody counts. */
  readonly usage?: SliverUsage;
  /** Why it has less than its amounts say now, in the words of an operator. Absent: it has not. */
  readonly throttled?: string;
  /** As its document gave them. */
  readonly tags: Readonly<Record<string, string>>;
  /** Where its own SSH server listens, once it has a place. */
  readonly login?: {
    readonly user: string;
    /** Known to its machine only. */
    readonly address: string;
    readonly port: number;
    /** Port of the machine that leads there from outside. */
    readonly published?: number;
  };
}

/** A sliver of the last document that was not taken over. */
export interface Refusal {
  readonly name?: string;
  readonly code: "malformed" | "capacity" | "stale" | "duplicate" | "instantiation";
  readonly reason: string;
}

/** A sliver that has ended, some of whose processes the kernel killed because its memory was full. */
export interface KilledSliver {
  readonly name: string;
  readonly generation: number;
  readonly memoryKills: number;
  /** KiB that it could have at most; 0: no cap of its own. */
  readonly memoryCap: number;
}

/** The manager's answer to a document, and to `Status`. */
export interface NodeReport {
  readonly node: string;
  readonly appliedEpoch: number;
  readonly appliedVersion: number;
  /** Of the applied document. */
  readonly writer?: string;
  /** The store was lost or unreadable: nothing is destroyed before a full document came. */
  readonly safeMode: boolean;
  /** The wall clock jumped: nothing ends by its age until the clock is trusted again. */
  readonly clockSuspect: boolean;
  readonly keySet: number;
  readonly capacity: Readonly<Record<string, number>>;
  readonly refused: readonly Refusal[];
  readonly slivers: readonly SliverReport[];
  /** Why the manager cannot look at its machine, in how many looks in a row; nothing is done to a sliver meanwhile. */
  readonly trouble?: { readonly message: string; readonly attempts: number };
  /** Why the last document was not carried out: it would end most slivers, and does not say that this is meant. */
  readonly withheld?: string;
  /** Names of what is on the machine and in no record: it is being ended, unless the store was lost. */
  readonly unlisted: readonly string[];
  /** The last ones since the manager started. Absent: none. */
  readonly killed?: readonly KilledSliver[];
  /** Changes with every look at the machine. Given to `Watch`, that answers when there is another. */
  readonly sequence: number;
}

/** What a node is to have, as one document would say it now: the last one, and what tickets brought since. */
export interface NodeDocument {
  readonly node: string;
  /** 0: no signed document came yet. */
  readonly epoch: number;
  readonly version: number;
  readonly writer?: string;
  readonly safeMode: boolean;
  /** A document that ends many slivers must say so (`removes`). Absent: the manager is older, and refuses the field. */
  readonly guarded?: true;
  /** As in a report. After a lost store these are slivers that a full document ends. */
  readonly unlisted: readonly string[];
  /** Without loans, which stay as they are when a document does not name them. */
  readonly slivers: readonly SliverSpec[];
  /** Each lender's list of loans. Absent: the manager is older than this field. */
  readonly loans?: Readonly<Record<string, readonly Loan[]>>;
}
