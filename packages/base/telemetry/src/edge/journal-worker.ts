import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "@nodeyard/runtime";
import type { JournalLimits } from "../journal.ts";
import type { FromJournal, ToJournal } from "./journal-file.ts";
import { historyIn, latestIn } from "./journal-reader.ts";
import { JournalStore } from "./journal-store.ts";

/** The thread that has the journal: the program's own thread never waits for its disk. */
const { file, ...given } = workerData as JournalLimits & { readonly file: string };
// An error here ends the thread, and the program goes on without a journal.
const store = new JournalStore(file);
const port = parentPort!;
let limits: JournalLimits = given;

function post(message: FromJournal): void {
  port.postMessage(message);
}

port.on("message", (message: ToJournal) => {
  switch (message.type) {
    case "write":
      return write(message);
    case "read":
      return post({ type: "read", id: message.id, history: historyIn(store.database, message.subject) });
    case "latest":
      return post({ type: "read", id: message.id, history: latestIn(store.database, message.names) });
    case "limits":
      limits = message.limits;
      return;
    case "prune":
      return store.prune(limits, message.now);
    case "close":
      store.close();
      port.close();
  }
});
// The size is known before the first event.
post({ type: "written", count: 0, bytes: store.bytes });

function write({ rows, now }: Extract<ToJournal, { type: "write" }>): void {
  try {
    // First, so that a disk that is full of it gets room.
    store.prune(limits, now, rows.length);
    store.write(rows);
    post({ type: "written", count: rows.length, bytes: store.bytes });
  } catch (error) {
    post({ type: "failed", count: rows.length, error: messageOf(error) });
  }
}
