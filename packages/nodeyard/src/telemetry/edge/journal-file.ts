import { Worker } from "node:worker_threads";
import { type Clock, messageOf, type Timer } from "@nodeyard/runtime";
import type { Journal, JournalEvent } from "../journal.ts";
import type { Log } from "../log.ts";

export interface JournalPlace {
  readonly file: string;
  /** Events kept; the oldest go first. */
  readonly keep: number;
}

export type JournalRow = Omit<JournalEvent, "facts"> & { readonly at: number; readonly facts: string };
export type JournalBatch = readonly JournalRow[] | "close";

export interface FileJournal extends Journal {
  /** Events that were not written because the disk could not keep up, or the file could not be used. */
  readonly lost: number;
  /** Writes what is left and ends. */
  close(): Promise<void>;
}

const FLUSH_MS = 250;
const MAX_WAITING = 50_000;

/**
 * A journal in a SQLite file, written in batches by a thread of its own. It is never worth more than the work it
 * describes: what it cannot take is counted and left out, and a file that fails stops nothing.
 */
export function openJournal(
  place: { readonly file: string; readonly keep?: number },
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): FileJournal {
  const data: JournalPlace = { file: place.file, keep: place.keep ?? 200_000 };
  // The built package has JavaScript only.
  const script = import.meta.url.endsWith(".ts") ? "./journal-worker.ts" : "./journal-worker.js";
  const worker = new Worker(new URL(script, import.meta.url), { workerData: data, execArgv: [] });
  worker.unref();
  let waiting: JournalRow[] = [];
  let underWay = 0;
  let lost = 0;
  let timer: Timer | undefined;
  let broken = false;
  const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  worker.on("message", (written: number) => {
    underWay -= written;
  });
  worker.on("error", (error) => {
    broken = true;
    lost += waiting.length + underWay;
    waiting = [];
    log.error(
      { file: data.file, error: messageOf(error) },
      "the journal cannot be written; going on without it",
    );
  });

  function flush(): void {
    timer?.cancel();
    timer = undefined;
    if (waiting.length === 0 || broken) return;
    underWay += waiting.length;
    worker.postMessage(waiting);
    waiting = [];
  }

  return {
    get lost() {
      return lost;
    },
    write({ facts, ...event }) {
      if (broken || waiting.length + underWay >= MAX_WAITING) {
        lost += 1;
        return;
      }
      waiting.push({ ...event, at: clock.now(), facts: JSON.stringify(facts) ?? "{}" });
      timer ??= clock.setTimer(FLUSH_MS, flush, { background: true });
    },
    async close() {
      flush();
      worker.ref();
      if (!broken) worker.postMessage("close");
      await ended;
    },
  };
}
