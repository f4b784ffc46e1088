import { Worker } from "node:worker_threads";
import { type Clock, messageOf, type Timer } from "@nodeyard/runtime";
import {
  defaultLimits,
  type History,
  type Journal,
  type JournalEventName,
  type JournalLimits,
  noHistory,
  type Subject,
} from "../journal.ts";
import type { Log } from "../log.ts";
import type { JournalRow } from "./journal-store.ts";

export type ToJournal =
  | { readonly type: "write"; readonly rows: readonly JournalRow[]; readonly now: number }
  | { readonly type: "read"; readonly id: number; readonly subject: Subject }
  | { readonly type: "latest"; readonly id: number; readonly names: readonly string[] }
  | { readonly type: "limits"; readonly limits: JournalLimits }
  | { readonly type: "prune"; readonly now: number }
  | { readonly type: "close" };

export type FromJournal =
  | { readonly type: "written"; readonly count: number; readonly error?: string }
  | { readonly type: "read"; readonly id: number; readonly history: History };

/** The journal in the file of a state folder, written by a thread of its own: no caller waits for the disk. */
export interface FileJournal extends Journal {
  /** Events that were not written because the disk could not keep up, or the file could not be used. */
  readonly lost: number;
  /** What is known of a thing, with what was written until now. Never rejects. */
  read(subject: Subject): Promise<History>;
  /** The latest events of these names, some thousands of them at most, oldest first. Never rejects. */
  latest(names: readonly JournalEventName[]): Promise<History>;
  /** Takes other limits; what is too much goes a little at a time. */
  limit(limits: JournalLimits): void;
  /** Writes what is left and ends. */
  close(): Promise<void>;
}

const FLUSH_MS = 250;
const MAX_WAITING = 50_000;
/** What is too old goes even while nothing happens. */
const PRUNE_MS = 600_000;
/** Questions that wait for the disk, at most. */
const MAX_READS = 100;

/**
 * A journal in a SQLite file, written in batches by a thread of its own. It is never worth more than the work it
 * describes: what it cannot take is counted and left out, and a file that fails stops nothing.
 */
export function openJournal(
  place: { readonly file: string; readonly limits?: JournalLimits },
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): FileJournal {
  const { file, limits = defaultLimits } = place;
  const worker = new Worker(new URL("./journal-worker.ts", import.meta.url), {
    workerData: { file, ...limits },
    execArgv: [],
  });
  worker.unref();
  let waiting: JournalRow[] = [];
  let underWay = 0;
  let lost = 0;
  let timer: Timer | undefined;
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
    underWay -= message.count;
    if (message.error !== undefined) lost += message.count;
    if (failing === (message.error !== undefined)) return;
    failing = !failing;
    if (failing)
      log.error({ file, error: message.error }, "cannot write the journal; events are not recorded for now");
    else log.info({ file, lost }, "the journal works again");
  });
  worker.on("error", (error) => {
    broken = messageOf(error);
    lost += waiting.length + underWay;
    waiting = [];
    log.error({ file, error: broken }, "cannot write the journal; continuing without it");
  });
  worker.once("exit", () => {
    broken ??= "it is closed";
    for (const answer of reads.values()) answer(unusable(broken));
    reads.clear();
    old.cancel();
  });

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
    get lost() {
      return lost;
    },
    write({ facts, ...event }) {
      if (broken !== undefined || waiting.length + underWay >= MAX_WAITING) {
        lost += 1;
        return;
      }
      const lease =
        event.event.startsWith("lease.") && typeof facts.lease === "string" ? facts.lease : undefined;
      waiting.push({ ...event, lease, at: Math.round(clock.now()), facts: JSON.stringify(facts) ?? "{}" });
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
