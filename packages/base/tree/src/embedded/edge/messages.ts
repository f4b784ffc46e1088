import type { RefusalKind } from "../errors.ts";
import type { Batch, Snapshot } from "../store.ts";

/** Input of the worker thread. */
export interface WorkerInput {
  readonly path: string;
  readonly nowMs: number;
}

export type ToWorker =
  | { readonly type: "commit"; readonly batch: Batch }
  | { readonly type: "backup"; readonly path: string }
  | { readonly type: "close" };

/** One answer per request, for each type in order. `opened` or `refused` is the first message. */
export type FromWorker =
  | { readonly type: "opened"; readonly snapshot: Snapshot }
  | { readonly type: "refused"; readonly kind: RefusalKind | "failed"; readonly message: string }
  | { readonly type: ToWorker["type"]; readonly error?: string };
