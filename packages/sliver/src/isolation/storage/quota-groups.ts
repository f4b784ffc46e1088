import { type Clock, deadline, messageOf } from "@nodeyard/runtime";
import { unlessAborted } from "../../in-turn.ts";

/** What is asked of the file system. Subvolumes and their quota groups have one number, which is never given out again. */
export interface QuotaTools {
  /** Subvolumes that are gone and whose groups were owed, as an earlier process left it. */
  owed(signal: AbortSignal): Promise<readonly number[]>;
  /** Survives this process. Noted before the subvolume goes. */
  owe(id: number): Promise<void>;
  settled(id: number): Promise<void>;
  /** Resolves when the file system has taken these subvolumes apart, which it does in its own time. */
  dropped(ids: readonly number[], signal: AbortSignal): Promise<void>;
  /** Writes out what is to be written: then groups count what is there, and the taking apart begins. */
  commit(signal: AbortSignal): Promise<void>;
  /** "gone": also when it was gone already. "busy": it counts something. Throws CommandError. */
  destroy(id: number, signal: AbortSignal): Promise<"gone" | "busy">;
}

/** What the removal of quota groups uses. */
export interface QuotaGroupOptions {
  readonly clock: Clock;
  readonly onProgress: (line: string) => void;
}

/** Milliseconds that a round may take: what is large is taken apart slowly. */
const ROUND = 300_000;
/** Of those that stayed, so many are tried again in a round, and so many are remembered; the rest is the next process's. */
const AGAIN = 50;
const KEPT = 1000;

/**
 * The quota groups of subvolumes that are removed. Linux 6.11 and later remove a group with its subvolume. Earlier ones
 * keep it, and refuse to remove it (EBUSY) while it counts anything, which is until the subvolume has been taken apart and that
 * is written. Removals do not wait for that: one round after another does it for all groups that came meanwhile. What fails is
 * logged, counted, and tried again in the next round or by the next process.
 */
export class QuotaGroups {
  readonly #tools: QuotaTools;
  readonly #options: QuotaGroupOptions;
  readonly #fresh = new Set<number>();
  readonly #stuck = new Map<number, string>();
  #working: Promise<void> | undefined;
  /** How many wait for the end of what is under way. */
  #waiting = 0;
  #stop = new AbortController();

  constructor(tools: QuotaTools, options: QuotaGroupOptions) {
    this.#tools = tools;
    this.#options = options;
  }

  /** Groups that could not be removed, and why. They limit nothing: their subvolumes are gone. */
  get stuck(): ReadonlyMap<number, string> {
    return this.#stuck;
  }

  /** Takes on what an earlier process owed. */
  async resume(signal: AbortSignal): Promise<void> {
    for (const id of await this.#tools.owed(signal)) this.begin(id);
  }

  /** Before the subvolume is removed: whatever happens then, its group is not forgotten. */
  owe(id: number): Promise<void> {
    return this.#tools.owe(id);
  }

  /** After it was removed. */
  begin(id: number): void {
    this.#fresh.add(id);
    this.#working ??= this.#work(this.#stop.signal).finally(() => {
      this.#working = undefined;
    });
  }

  /** Resolves when each is gone or is known to stay; the file system is asked to do it at once. */
  async hurry(signal: AbortSignal): Promise<void> {
    if (this.#working === undefined) return;
    this.#waiting++;
    try {
      await this.#tools.commit(signal);
      await unlessAborted(this.#working, signal);
    } finally {
      this.#waiting--;
    }
  }

  /** Resolves when nothing is under way any more; what is owed stays owed. */
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
      const limit = deadline(this.#options.clock, ROUND, late, stop);
      const before = this.#stuck.size;
      await this.#round(ids, limit.signal);
      limit.cancel();
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
      // Of those, some may be gone; the next round finds that.
      for (const id of ids) this.#keep(id, messageOf(error));
    }
  }

  /** Those that are busy. One that fails keeps no other. */
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

  /** At the end, so that each has its turn. */
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
