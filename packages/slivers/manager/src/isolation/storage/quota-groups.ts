import { abortable, type Clock, deadline, messageOf } from "@nodeyard/runtime";

/** Operations of the file system. A subvolume and its quota group have the same number, which btrfs never uses again. */
export interface QuotaTools {
  /** Numbers of removed subvolumes whose groups an earlier process noted and did not remove. */
  owed(signal: AbortSignal): Promise<readonly number[]>;
  /** Notes a group durably. Called before its subvolume is removed. */
  owe(id: number): Promise<void>;
  settled(id: number): Promise<void>;
  /** Resolves when the file system has freed these subvolumes, which it does in the background. */
  dropped(ids: readonly number[], signal: AbortSignal): Promise<void>;
  /** Writes pending changes to disk. After that the counts of groups are exact and btrfs begins to free removed subvolumes. */
  commit(signal: AbortSignal): Promise<void>;
  /** "gone": the group does not exist (any more). "busy": it still counts data. Throws CommandError. */
  destroy(id: number, signal: AbortSignal): Promise<"gone" | "busy">;
}

/** What everything that works on the pool waits by, and tells its progress to. */
export interface PoolTools {
  readonly clock: Clock;
  readonly onProgress: (line: string) => void;
}

/** Milliseconds for one round: btrfs needs minutes to free a large subvolume. */
const ROUND = 300_000;
/** Failed groups that are tried again in one round, and failed groups that are remembered. The rest is left for the next process. */
const AGAIN = 50;
const KEPT = 1000;

/**
 * Removes the quota groups of removed subvolumes. Linux 6.11 and later remove a group together with its subvolume. Earlier kernels keep it
 * and refuse its removal (EBUSY) while it counts data: until the subvolume has been freed and that has been written. The removal of a
 * sliver does not wait for this: rounds in the background remove all groups that were added meanwhile. A group that fails is logged,
 * counted and tried again in the next round or by the next process.
 */
export class QuotaGroups {
  readonly #tools: QuotaTools;
  readonly #options: PoolTools;
  readonly #fresh = new Set<number>();
  readonly #stuck = new Map<number, string>();
  #working: Promise<void> | undefined;
  /** Number of callers that wait for the current work. */
  #waiting = 0;
  #stop = new AbortController();

  constructor(tools: QuotaTools, options: PoolTools) {
    this.#tools = tools;
    this.#options = options;
  }

  /** Groups that could not be removed, with the reason. They limit nothing, since their subvolumes do not exist. */
  get stuck(): ReadonlyMap<number, string> {
    return this.#stuck;
  }

  /** Resumes the removals that an earlier process noted. */
  async resume(signal: AbortSignal): Promise<void> {
    for (const id of await this.#tools.owed(signal)) this.begin(id);
  }

  /** To be called before the subvolume is removed, so that no crash makes its group forgotten. */
  owe(id: number): Promise<void> {
    return this.#tools.owe(id);
  }

  /** To be called after the subvolume was removed. */
  begin(id: number): void {
    this.#fresh.add(id);
    this.#working ??= this.#work(this.#stop.signal).finally(() => {
      this.#working = undefined;
    });
  }

  /** Resolves when each group is removed or has failed. The file system is asked to begin at once. */
  async hurry(signal: AbortSignal): Promise<void> {
    // Kept here, because the work may end while its changes are written.
    const working = this.#working;
    if (working === undefined) return;
    this.#waiting++;
    try {
      await this.#tools.commit(signal);
      await abortable(working, signal);
    } finally {
      this.#waiting--;
    }
  }

  /** Resolves when no work is under way. Groups that are left keep their notes. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error("the pool is left"));
    await this.#working;
    this.#fresh.clear();
    this.#stuck.clear();
    this.#stop = new AbortController();
  }

  async #work(stop: AbortSignal): Promise<void> {
    while (this.#fresh.size > 0 && !stop.aborted) {
      const ids = [...new Set([...this.#fresh, ...[...this.#stuck.keys()].slice(0, AGAIN)])];
      this.#fresh.clear();
      const late = () => new Error(`not within ${ROUND / 1000} s`);
      using limit = deadline(this.#options.clock, ROUND, late, stop);
      const before = this.#stuck.size;
      await this.#round(ids, limit.signal);
      if (!stop.aborted) this.#tell(before);
    }
  }

  /** Never rejects. */
  async #round(ids: readonly number[], signal: AbortSignal): Promise<void> {
    try {
      if (this.#waiting > 0) await this.#tools.commit(signal);
      await this.#tools.dropped(ids, signal);
      const busy = await this.#destroy(ids, signal);
      if (busy.length === 0) return;
      await this.#tools.commit(signal);
      for (const id of await this.#destroy(busy, signal))
        this.#keep(id, "busy, though its subvolume is gone");
    } catch (error) {
      // Some of them may be removed already. The next round finds out.
      for (const id of ids) this.#keep(id, messageOf(error));
    }
  }

  /** Returns the groups that are busy. A group that fails does not keep the others from being removed. */
  async #destroy(ids: readonly number[], signal: AbortSignal): Promise<number[]> {
    const busy: number[] = [];
    for (const id of ids) {
      try {
        if ((await this.#tools.destroy(id, signal)) === "busy") {
          busy.push(id);
          continue;
        }
        await this.#tools.settled(id);
        this.#stuck.delete(id);
      } catch (error) {
        signal.throwIfAborted();
        this.#keep(id, messageOf(error));
      }
    }
    return busy;
  }

  /** Appends the group at the end, so that all failed groups are tried in turn. */
  #keep(id: number, why: string): void {
    this.#stuck.delete(id);
    if (this.#stuck.size < KEPT) this.#stuck.set(id, why);
  }

  #tell(before: number): void {
    const { onProgress } = this.#options;
    const [first] = this.#stuck;
    if (first !== undefined && this.#stuck.size > before)
      onProgress(
        `${this.#stuck.size} quota groups of removed subvolumes cannot be removed (0/${first[0]}: ${first[1]}); the next removal tries again`,
      );
    if (first === undefined && before > 0) onProgress("the remaining quota groups are removed");
  }
}
