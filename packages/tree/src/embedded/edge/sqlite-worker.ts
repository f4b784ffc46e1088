import { parentPort, workerData } from "node:worker_threads";
import type { FromWorker, ToWorker, WorkerInput } from "./messages.ts";
import { Refusal } from "./refusal.ts";
import { SqliteFile } from "./sqlite-file.ts";

/** The thread that waits for the disk, so that the event loop never does. */
const input = workerData as WorkerInput;
let broken: string | undefined;

function tell(message: FromWorker): void {
  parentPort?.postMessage(message);
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

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

function serve(file: SqliteFile): void {
  parentPort?.on("message", (message: ToWorker) => {
    if (message.type === "backup") {
      file.backup(message.path).then(
        () => tell({ type: "backup" }),
        (error: unknown) => tell({ type: "backup", error: textOf(error) }),
      );
      return;
    }
    // After one failed write nothing may follow: what came later may build on what was lost.
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
  });
}

start();
