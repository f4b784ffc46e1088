import type { Observed, SliverConfig } from "../core/plan.ts";

/** Which incarnation an operation is meant for; a back end does nothing to another one in its place. */
export interface SliverRef {
  readonly index: number;
  readonly incarnation: number;
}

/** What a configure could not bring about: it is reported, never passed over. */
export interface Configured {
  /** One line each, in the words of the operator: `io: the kernel has no io controller`. */
  readonly unenforced: readonly string[];
}

/**
 * Makes and unmakes slivers on this machine. The executor calls at most one operation per incarnation at a time, and
 * operations of different incarnations at the same time. Every operation is safe to repeat; one that was aborted or
 * failed leaves something that `inspect` shows (as `broken` at worst) and that `destroy` can remove. A promise settles
 * soon after its signal aborts. Users, paths, ids and rules derive from the index alone.
 */
export interface BackEnd {
  readonly name: string;
  /**
   * Locked by the manager that uses it: names on a machine are the same for every manager. Absent: several managers may run on one
   * machine.
   */
  readonly lockFolder?: string;
  /** The account on this machine that goes with an index; it need not exist yet. */
  account(index: number): {
    readonly user: string;
    readonly uid: number;
    /** Where its SSH server listens; absent: it has none. */
    readonly address?: string;
    /** Port of this machine that leads there from outside; absent: none does. */
    readonly published?: number;
  };
  /**
   * The folder that a sliver sees read only as /run/nodeyard, for the socket that speaks for it: of its incarnation, so
   * that what is mounted there never becomes another one's. It is there when the sliver is started. Absent: slivers of
   * this back end have the machine's own files.
   */
  socketFolder?(ref: SliverRef): string;
  /** KiB that its slivers' roots have in all, whether it is made already or not. Absent: it limits none. */
  poolSize?(): Promise<number>;
  /**
   * What of removed slivers could not be taken away yet, one line each, in the words of the operator. It is tried again, and
   * takes nothing from anybody. Absent: there is never any.
   */
  remains?(): readonly string[];
  /**
   * Everything on this machine that carries this back end's own marks, and nothing else. It survives a restart of the manager, so the marks are on the machine and not in the process.
   */
  inspect(signal: AbortSignal): Promise<readonly Observed[]>;
  /** Makes it, stopped. Whatever an older incarnation left at the index is an error, never reused. */
  create(config: SliverConfig, signal: AbortSignal): Promise<void>;
  /** Applies differences, running or not; afterwards `inspect` tells `config.digest` and `config.effective`. */
  configure(config: SliverConfig, signal: AbortSignal): Promise<Configured>;
  /** Resolves when it can be logged in to. */
  start(config: SliverConfig, signal: AbortSignal): Promise<void>;
  /** Resolves when no process of it is left. */
  stop(ref: SliverRef, signal: AbortSignal): Promise<void>;
  /** Resolves when nothing of it is left. One that is not there is no error. */
  destroy(ref: SliverRef, signal: AbortSignal): Promise<void>;
}
