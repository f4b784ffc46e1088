import type { OperationHandles } from "../operations/index.ts";
import type { View } from "../view/index.ts";

/** What the process knows, as soon as it knows anything. */
export interface Known {
  readonly view: View;
  readonly handles: OperationHandles;
}

/** Whether the process does now what it is there for; `why` says what it lacks. */
export interface Readiness {
  readonly ready: boolean;
  readonly why: string;
}

/** A build or an upload under way in this process, as its builder tells. */
export interface Work {
  readonly kind: "build" | "upload";
  readonly image: string;
  readonly build: string;
  readonly provider: string | null;
  readonly phase: string;
  readonly bytes: number;
  readonly total: number | null;
  readonly elapsedMs: number;
  readonly bytesPerSecond: number;
  readonly etaMs: number | null;
}

/** A page of metrics and its content type. */
export interface Page {
  readonly type: string;
  readonly text: string;
}

/** Where answers come from. Query anew for each request: a process listens before it knows anything. */
export interface Sources {
  /** Undefined: the tree has not been seen yet. */
  known(): Known | undefined;
  readiness(): Readiness;
  /** Undefined: no builder runs in this process. */
  work(): readonly Work[] | undefined;
  metrics(): Promise<Page>;
}
