import { parentPort, workerData } from "node:worker_threads";
import { Refusal } from "../errors.ts";
import type { FromWorker, ToWorker, WorkerInput } from "./messages.ts";
import { SqliteFile } from "./sqlite-file.ts";

/** The thread that writes to the disk, so that fsync does not block the event loop of the main thread. */
const input = workerData as WorkerInput;
/** Message of the first failed commit. */
let broken: string | undefined;

function tell(message: FromWorker): void {
  parentPort?.postMessage(message);
}

/** Errors cross threads as text: their classes would be lost. */
function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Opens the file and sends the tree as the first message, or why it could not. A refusal leaves no file open, so that another process
 * can have it.
 */
function start(): void {
  let file: SqliteFile | undefined;
  try {
    file = SqliteFile.open(input.path);
    tell({ type: "opened", snapshot: file.read(input.nowMs) });
  } catch (error) {
    file?.close();
    tell({ type: "refused", kind: error instanceof Refusal ? error.kind : "failed", message: textOf(error) });
    return;
  }
  serve(file);
}

/** Answers messages until "close". Commits are carried out in their order, one fsync each; a backup runs beside them. */
function serve(file: SqliteFile): void {
  // One backup at a time.
  let copies = Promise.resolve();
  let copying = false;
  // Commits that came during a step of the copy. They are taken between two steps and before any other message, so their order stays.
  let held: ToWorker[] = [];
  const takeHeld = (): void => {
    const messages = held;
    held = [];
    for (const message of messages) take(message);
  };
  const copy = async (path: string): Promise<void> => {
    copying = true;
    let error: string | undefined;
    try {
      await file.backup(path, takeHeld);
    } catch (failure) {
      error = textOf(failure);
    }
    copying = false;
    takeHeld();
    tell({ type: "backup", ...(error !== undefined && { error }) });
  };
  parentPort?.on("message", (message: ToWorker) => {
    if (message.type === "backup") copies = copies.then(() => copy(message.path));
    // Another thread runs the steps of the copy, and a step that meets a transaction fails. So commits run between the steps.
    else if (message.type === "commit" && copying) held.push(message);
    else {
      takeHeld();
      take(message);
    }
  });
  const take = (message: ToWorker): void => {
    // After a failed commit no later one may succeed, because it may depend on the lost one.
    if (broken !== undefined && message.type === "commit") {
      tell({ type: "commit", error: broken });
      return;
    }
    try {
      if (message.type === "commit") file.commit(message.batch);
      else {
        file.close();
        parentPort?.close();
      }
      tell({ type: message.type });
    } catch (error) {
      broken = textOf(error);
      tell({ type: message.type, error: broken });
    }
  };
}

start();
