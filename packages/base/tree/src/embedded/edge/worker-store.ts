import { Worker } from "node:worker_threads";
import { StoreFailed, type TreeError } from "../../errors.ts";
import { refused } from "../errors.ts";
import type { Snapshot, Store } from "../store.ts";
import type { FromWorker, ToWorker, WorkerInput } from "./messages.ts";
import { readPid } from "./state-folder.ts";

/** A message to the worker that has no answer yet. */
interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: TreeError) => void;
}

/**
 * Opens the file in a worker thread and reads the whole tree from it. `nowMs` is the wall time, from which a copied file gets its epoch.
 * Rejects with `StoreRefused` when an operator can fix the reason, with `StoreFailed` otherwise; then no thread is left.
 */
export async function openWorkerStore(
  folder: string,
  path: string,
  nowMs: number,
): Promise<{ readonly store: Store; readonly snapshot: Snapshot }> {
  const workerData: WorkerInput = { path, nowMs };
  const worker = new Worker(new URL("./sqlite-worker.ts", import.meta.url), { workerData, execArgv: [] });
  const store = new WorkerStore(worker);
  const first = await store.first.catch((error: unknown) => {
    throw new StoreFailed(`opening ${path}`, "none", error);
  });
  if (first.type === "opened") return { store, snapshot: first.snapshot };
  await worker.terminate();
  if (first.type === "refused" && first.kind !== "failed")
    throw refused(first.kind, first.message, folder, readPid(folder));
  throw new StoreFailed(
    `opening ${path}`,
    "none",
    new Error("message" in first ? first.message : first.type),
  );
}

/**
 * The main thread's side of the worker. The worker handles messages of one type in their order, so the first waiter of a type gets the
 * first answer, and answers need no number.
 */
class WorkerStore implements Store {
  readonly #worker: Worker;
  readonly #waiting: Record<ToWorker["type"], Waiter[]> = { commit: [], backup: [], close: [] };
  readonly #first = Promise.withResolvers<FromWorker>();
  /** Why the worker ended; also set by an end that `close` asked for. Later messages are refused with outcome "none". */
  #failure: Error | undefined;
  #closed = false;

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.on("message", (message: FromWorker) => this.#onMessage(message));
    worker.on("error", (error) => this.#end(error));
    worker.on("exit", (code) => this.#end(new Error(`the store's thread ended with ${code}`)));
  }

  /** The worker's first message: that it opened the file, or the reason why not. */
  get first(): Promise<FromWorker> {
    return this.#first.promise;
  }

  commit(batch: Parameters<Store["commit"]>[0]): Promise<void> {
    return this.#ask({ type: "commit", batch });
  }

  backup(path: string): Promise<void> {
    return this.#ask({ type: "backup", path });
  }

  /**
   * Returns when the file is closed and the thread is gone; a second call at once. A worker that is dead already is no error: its
   * failure was reported to those who waited.
   */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#failure === undefined) await this.#ask({ type: "close" }).catch(() => undefined);
    await this.#worker.terminate();
  }

  /** Sends a message; rejects with StoreFailed. */
  #ask(message: ToWorker): Promise<void> {
    const failure = this.#failure;
    if (failure !== undefined) return Promise.reject(new StoreFailed(message.type, "none", failure));
    return new Promise((resolve, reject) => {
      this.#waiting[message.type].push({ resolve, reject });
      this.#worker.postMessage(message);
    });
  }

  #onMessage(message: FromWorker): void {
    if (message.type === "opened" || message.type === "refused") {
      this.#first.resolve(message);
      return;
    }
    const waiter = this.#waiting[message.type].shift();
    if (message.error === undefined) waiter?.resolve();
    else waiter?.reject(new StoreFailed(message.type, "unknown", new Error(message.error)));
  }

  /** The worker died. Waiting calls fail with the outcome unknown, because the worker may have committed before it died. */
  #end(error: Error): void {
    this.#failure ??= error;
    this.#first.reject(error);
    for (const type of ["commit", "backup", "close"] as const) {
      for (const waiter of this.#waiting[type].splice(0))
        waiter.reject(new StoreFailed(type, "unknown", this.#failure));
    }
  }
}
