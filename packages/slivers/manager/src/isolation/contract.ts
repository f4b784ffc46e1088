import type { CacheReport, ImageTrial } from "@nodeyard/sliver-protocol";
import type { Observed, SliverConfig } from "../core/plan.ts";

/** The incarnation of an operation. A back end does nothing to another incarnation at the same index. */
export interface SliverRef {
  readonly index: number;
  readonly incarnation: number;
}

/** What an operator does with a cache. */
export const CACHE_CHANGES = ["delete", "pin", "unpin"] as const;
/** One of CACHE_CHANGES. */
export type CacheChange = (typeof CACHE_CHANGES)[number];

/** Result of configure: limits that could not be set are reported, never ignored. */
export interface Configured {
  /** For operators, one line each: `io: the kernel has no io controller`. */
  readonly unenforced: readonly string[];
}

/**
 * Makes and removes slivers on this machine. The executor calls at most one operation per incarnation at a time; operations of different
 * incarnations run in parallel. Every operation may be repeated. An aborted or failed operation leaves something that `inspect` shows (as
 * `broken` in the worst case) and that `destroy` removes. A promise settles soon after its signal aborts. Users, paths, ids and rules
 * depend on the index only.
 */
export interface BackEnd {
  readonly name: string;
  /**
   * Folder that the manager locks, because names on the machine are the same for every manager. Absent: several managers may run on one
   * machine.
   */
  readonly lockFolder?: string;
  /** The account of an index on this machine; it may not exist yet. */
  account(index: number): {
    readonly user: string;
    readonly uid: number;
    /** Address of the sliver's SSH server; absent: it has none. */
    readonly address?: string;
    /** Port of this machine that is forwarded to the SSH server; absent: none is. */
    readonly published?: number;
  };
  /**
   * The folder that a sliver sees read-only as /run/nodeyard, for its API socket. It belongs to an incarnation, so that a mounted folder
   * never becomes another incarnation's. It exists when the sliver starts. Absent: slivers of this back end see the machine's own files.
   */
  socketFolder?(ref: SliverRef): string;
  /** Size in KiB of the pool with the slivers' roots, even before it is made. Absent: there is no limit. */
  poolSize?(): Promise<number>;
  /**
   * Faults that are tried again, for operators, one line each: leftovers of removed slivers, which reduce no sliver's amounts,
   * and limits that do not hold on the machine for now. Absent: there never is anything.
   */
  remains?(): readonly string[];
  /** Whether disk limits do not hold, as of the last look. Absent: slivers have none. */
  counting?(): boolean;
  /** The caches of this machine. Absent: slivers have none. */
  caches?(): readonly CacheReport[];
  /** Deletes a cache, or says whether it stays whatever room others need. Throws CacheError. Absent as `caches` is. */
  changeCache?(id: string, change: CacheChange, signal: AbortSignal): Promise<void>;
  /** New versions of images that are tried, or were tried last. Absent: slivers have no images, or no version is tried. */
  trials?(): readonly ImageTrial[];
  /**
   * Everything on this machine with this back end's marks, and nothing else. Marks are on the machine, so they survive a restart of the
   * manager.
   */
  inspect(signal: AbortSignal): Promise<readonly Observed[]>;
  /** Makes a stopped sliver. Fails when an older incarnation has left something at the index; nothing is reused. */
  create(config: SliverConfig, signal: AbortSignal): Promise<void>;
  /** Applies a configuration, running or not. Afterwards `inspect` reports `config.digest` and `config.effective`. */
  configure(config: SliverConfig, signal: AbortSignal): Promise<Configured>;
  /** Resolves when clients can log in. */
  start(config: SliverConfig, signal: AbortSignal): Promise<void>;
  /** Resolves when no process of the sliver is left. */
  stop(ref: SliverRef, signal: AbortSignal): Promise<void>;
  /** Resolves when nothing of the sliver is left. A sliver that does not exist is no error. */
  destroy(ref: SliverRef, signal: AbortSignal): Promise<void>;
  /**
   * The end of what the sliver wrote to its console: its boot, its start script, its SSH server. It is text of strangers. Null: there is
   * no such sliver, or it never ran. Absent: slivers of this back end have no console.
   */
  console?(ref: SliverRef): Promise<string | null>;
  /** Makes what a sliver has now an image of that name, in the place of an earlier one. Absent: slivers have no images. */
  snapshot?(ref: SliverRef, image: string, signal: AbortSignal): Promise<void>;
  /** Takes the name from such an image, which goes when no sliver is a copy of it. Absent as `snapshot` is. */
  forgetSnapshot?(image: string, signal: AbortSignal): Promise<void>;
}
