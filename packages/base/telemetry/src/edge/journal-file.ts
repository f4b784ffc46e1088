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

/** The journal in the file of a state folder, written by a thread of its own: no caller waits for the disk. */
export interface FileJournal extends Journal {
  /** The events of a subject, including all that were written before this call. Never rejects. */
  read(subject: Subject): Promise<History>;
  /** The latest events of these names, some thousands of them at most, oldest first. Never rejects. */
  latest(names: readonly JournalEventName[]): Promise<History>;
  /** Changes the limits; events beyond them are deleted in small steps. */
  limit(limits: JournalLimits): void;
  /** Writes the remaining events and ends the thread. */
  close(): Promise<void>;
}

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
 * A journal in a SQLite file, written in batches by a thread of its own. It never delays the work that it describes: events that it
 * cannot take are counted and dropped, and a file that fails stops nothing.
 */
export function openJournal(
  place: { readonly file: string; readonly limits?: JournalLimits },
  { clock, log, counters }: { readonly clock: Clock; readonly log: Log; readonly counters: Counters },
): FileJournal {
  const { file, limits = defaultLimits } = place;
  const worker = new Worker(new URL("./journal-worker.ts", import.meta.url), {
    workerData: { file, ...limits },
    execArgv: [],
  });
  // The thread alone does not keep a process alive that has nothing else to do.
  worker.unref();
  let waiting: JournalRow[] = [];
  // Rows that were sent and not answered. They count towards the limit, since they are in memory, too.
  let underWay = 0;
  let timer: Timer | undefined;
  // Why the thread is gone for good; `failing` is a failure that may pass, such as a full disk.
  let broken: string | undefined;
  let failing = false;
  let asked = 0;
  const reads = new Map<number, (history: History) => void>();
  const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));

  worker.on("message", (message: FromJournal) => {
    if (message.type === "read") {
      reads.get(message.id)?.(message.history);
      reads.delete(message.id);
      return;
    }
    const { type, count } = message;
    underWay -= count;
    if (type === "written") {
      counters.add("journal.events", count, { result: "written" });
      counters.level("journal.size", message.bytes, {});
      if (count > 0) counters.level("journal.last_write", clock.now() / 1000, {});
    } else {
      drop(count);
      counters.add("journal.write_failures", 1);
    }
    // Only a change is logged: a full disk fails each batch.
    if (failing === (type === "failed")) return;
    failing = !failing;
    if (type === "failed")
      log.error({ file, error: message.error }, "cannot write the journal; events are not recorded for now");
    else log.info({ file, dropped: counters.value("journal.events", DROPPED) }, "the journal works again");
  });
  worker.on("error", (error) => {
    broken = messageOf(error);
    drop(waiting.length + underWay);
    counters.add("journal.write_failures", 1);
    waiting = [];
    log.error({ file, error: broken }, "cannot write the journal; continuing without it");
  });
  worker.once("exit", () => {
    // The thread answers no question any more.
    broken ??= "it is closed";
    for (const answer of reads.values()) answer(unusable(broken));
    reads.clear();
    old.cancel();
  });

  const drop = (count: number) => counters.add("journal.events", count, DROPPED);
  const unusable = (why: string) => noHistory(`the journal ${file} cannot be used: ${why}`);
  const send = (message: ToJournal) => worker.postMessage(message);
  let old: Timer;
  const pruneLater = () => {
    old = clock.setTimer(
      PRUNE_MS,
      () => {
        send({ type: "prune", now: clock.now() });
        pruneLater();
      },
      { background: true },
    );
  };
  pruneLater();

  function flush(): void {
    timer?.cancel();
    timer = undefined;
    if (waiting.length === 0 || broken !== undefined) return;
    underWay += waiting.length;
    send({ type: "write", rows: waiting, now: clock.now() });
    waiting = [];
  }

  async function ask(question: (id: number) => ToJournal): Promise<History> {
    if (broken !== undefined) return unusable(broken);
    if (reads.size >= MAX_READS) return noHistory("too many ask at once");
    flush();
    const id = asked++;
    return new Promise((resolve) => {
      reads.set(id, resolve);
      send(question(id));
    });
  }

  return {
    write({ event, request, node, facts }) {
      if (broken !== undefined || waiting.length + underWay >= MAX_WAITING) {
        drop(1);
        return;
      }
      // In a column of its own, by which a lease's history is found.
      const lease = event.startsWith("lease.") && typeof facts.lease === "string" ? facts.lease : undefined;
      const at = Math.round(clock.now());
      waiting.push({ event, request, node, lease, at, facts: JSON.stringify(facts) ?? "{}" });
      timer ??= clock.setTimer(FLUSH_MS, flush, { background: true });
    },
    read: (subject) => ask((id) => ({ type: "read", id, subject })),
    latest: (names) => ask((id) => ({ type: "latest", id, names })),
    limit(next) {
      send({ type: "limits", limits: next });
    },
    async close() {
      flush();
      worker.ref();
      old.cancel();
      if (broken === undefined) send({ type: "close" });
      await ended;
    },
  };
}
