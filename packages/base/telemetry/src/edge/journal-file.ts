import { Worker } from "node:worker_threads";
import { type Clock, messageOf, type Timer } from "@nodeyard/runtime";
import type { Counters } from "../counters.ts";
import {
  defaultLimits,
  type History,
  type Journal,
  type JournalLimits,
  noHistory,
  type Subject,
} from "../journal.ts";
import type { JournalEventName } from "../journal-events.ts";
import type { Log } from "../log.ts";
import type { JournalRow } from "./journal-store.ts";

/** What the thread of the journal is told. It does one message after the other, so a read sees all earlier writes. */
export type ToJournal =
  | { readonly type: "write"; readonly rows: readonly JournalRow[]; readonly now: number }
  | { readonly type: "read"; readonly id: number; readonly subject: Subject }
  | { readonly type: "latest"; readonly id: number; readonly names: readonly string[] }
  | { readonly type: "limits"; readonly limits: JournalLimits }
  | { readonly type: "prune"; readonly now: number }
  | { readonly type: "close" };

/** What the thread answers; `count` is the number of rows of one batch. */
export type FromJournal =
  /** `bytes`: of the file. */
  | { readonly type: "written"; readonly count: number; readonly bytes: number }
  | { readonly type: "failed"; readonly count: number; readonly error: string }
  | { readonly type: "read"; readonly id: number; readonly history: History };

/** Events are gathered for so long, milliseconds; a crash of the program loses those. */
const FLUSH_MS = 250;
/** Events in memory and on their way to the thread, at most; later ones are dropped. */
const MAX_WAITING = 50_000;
/** How often old events are deleted while no new ones arrive, milliseconds. */
const PRUNE_MS = 600_000;
const DROPPED = { result: "dropped" } as const;
/** Questions that wait for the disk, at most. */
const MAX_READS = 100;

/**
 * The journal in a SQLite file of a state folder, written in batches by a thread of its own: no caller waits for the disk. It never delays
 * the work that it describes: events that it cannot take are counted and dropped, and a file that fails stops nothing.
 */
export class FileJournal implements Journal {
  readonly #file: string;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #counters: Counters;
  readonly #worker: Worker;
  readonly #ended: Promise<void>;
  readonly #reads = new Map<number, (history: History) => void>();
  #asked = 0;
  #waiting: JournalRow[] = [];
  /** Rows that were sent and not answered. They count towards the limit, since they are in memory, too. */
  #underWay = 0;
  #flushing: Timer | undefined;
  #pruning: Timer | undefined;
  /** Why the thread is gone for good; `#failing` is a failure that may pass, such as a full disk. */
  #broken: string | undefined;
  #failing = false;

  /** Opens the file in its thread; makes it if it is missing. */
  constructor(
    { file, limits = defaultLimits }: { readonly file: string; readonly limits?: JournalLimits },
    { clock, log, counters }: { readonly clock: Clock; readonly log: Log; readonly counters: Counters },
  ) {
    this.#file = file;
    this.#clock = clock;
    this.#log = log;
    this.#counters = counters;
    this.#worker = new Worker(new URL("./journal-worker.ts", import.meta.url), {
      workerData: { file, ...limits },
      execArgv: [],
    });
    // The thread alone does not keep a process alive that has nothing else to do.
    this.#worker.unref();
    this.#worker.on("message", (message: FromJournal) => this.#onMessage(message));
    this.#worker.on("error", (error) => this.#onError(error));
    this.#ended = new Promise((resolve) => {
      this.#worker.once("exit", () => {
        this.#onExit();
        resolve();
      });
    });
    this.#pruneLater();
  }

  write({ event, request, node, facts }: Parameters<Journal["write"]>[0]): void {
    if (this.#broken !== undefined || this.#waiting.length + this.#underWay >= MAX_WAITING) {
      this.#drop(1);
      return;
    }
    // In a column of its own, by which a lease's history is found.
    const lease = event.startsWith("lease.") && typeof facts.lease === "string" ? facts.lease : undefined;
    const at = Math.round(this.#clock.now());
    this.#waiting.push({ event, request, node, lease, at, facts: JSON.stringify(facts) ?? "{}" });
    this.#flushing ??= this.#clock.setTimer(FLUSH_MS, () => this.#flush(), { background: true });
  }

  /** The events of a subject, including all that were written before this call. Never rejects. */
  read(subject: Subject): Promise<History> {
    return this.#ask((id) => ({ type: "read", id, subject }));
  }

  /** The latest events of these names, some thousands of them at most, oldest first. Never rejects. */
  latest(names: readonly JournalEventName[]): Promise<History> {
    return this.#ask((id) => ({ type: "latest", id, names }));
  }

  /** Changes the limits; events beyond them are deleted in small steps. */
  limit(limits: JournalLimits): void {
    this.#send({ type: "limits", limits });
  }

  /** Writes the remaining events and ends the thread. */
  async close(): Promise<void> {
    this.#flush();
    this.#worker.ref();
    this.#pruning?.cancel();
    if (this.#broken === undefined) this.#send({ type: "close" });
    await this.#ended;
  }

  #onMessage(message: FromJournal): void {
    if (message.type === "read") {
      this.#reads.get(message.id)?.(message.history);
      this.#reads.delete(message.id);
      return;
    }
    const { type, count } = message;
    const file = this.#file;
    this.#underWay -= count;
    if (type === "written") {
      this.#counters.add("journal.events", count, { result: "written" });
      this.#counters.level("journal.size", message.bytes, {});
      if (count > 0) this.#counters.level("journal.last_write", this.#clock.now() / 1000, {});
    } else {
      this.#drop(count);
      this.#counters.add("journal.write_failures", 1);
    }
    // Only a change is logged: a full disk fails each batch.
    if (this.#failing === (type === "failed")) return;
    this.#failing = !this.#failing;
    const dropped = this.#counters.value("journal.events", DROPPED);
    if (type === "written") this.#log.info({ file, dropped }, "the journal works again");
    else
      this.#log.error(
        { file, error: message.error },
        "cannot write the journal; events are not recorded for now",
      );
  }

  #onError(error: unknown): void {
    this.#broken = messageOf(error);
    this.#drop(this.#waiting.length + this.#underWay);
    this.#counters.add("journal.write_failures", 1);
    this.#waiting = [];
    const facts = { file: this.#file, error: this.#broken };
    this.#log.error(facts, "cannot write the journal; continuing without it");
  }

  /** The thread answers no question any more. */
  #onExit(): void {
    this.#broken ??= "it is closed";
    for (const answer of this.#reads.values()) answer(this.#unusable(this.#broken));
    this.#reads.clear();
    this.#pruning?.cancel();
  }

  #pruneLater(): void {
    const prune = () => {
      this.#send({ type: "prune", now: this.#clock.now() });
      this.#pruneLater();
    };
    this.#pruning = this.#clock.setTimer(PRUNE_MS, prune, { background: true });
  }

  #flush(): void {
    this.#flushing?.cancel();
    this.#flushing = undefined;
    if (this.#waiting.length === 0 || this.#broken !== undefined) return;
    this.#underWay += this.#waiting.length;
    this.#send({ type: "write", rows: this.#waiting, now: this.#clock.now() });
    this.#waiting = [];
  }

  async #ask(question: (id: number) => ToJournal): Promise<History> {
    if (this.#broken !== undefined) return this.#unusable(this.#broken);
    if (this.#reads.size >= MAX_READS) return noHistory("too many ask at once");
    this.#flush();
    const id = this.#asked++;
    return new Promise((resolve) => {
      this.#reads.set(id, resolve);
      this.#send(question(id));
    });
  }

  #unusable(why: string): History {
    return noHistory(`the journal ${this.#file} cannot be used: ${why}`);
  }

  #drop(count: number): void {
    this.#counters.add("journal.events", count, DROPPED);
  }

  #send(message: ToJournal): void {
    this.#worker.postMessage(message);
  }
}
