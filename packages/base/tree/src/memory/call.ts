import type { Clock, Timer } from "@nodeyard/runtime";
import type { CallOptions, Op } from "../contract.ts";
import { CallEnded, type Outcome, type TreeError } from "../errors.ts";

/** A call in the form in which faults see it. */
export interface CallInfo {
  readonly client: string;
  readonly kind: "write" | "get" | "stat" | "children" | "sync" | "watch";
  readonly path: string;
  /** The operations of a write; empty for other calls. */
  readonly ops: readonly Op[];
}

/** For calls without a deadline of their own (rule 8). */
const DEFAULT_DEADLINE_MS = 60_000;

/** A call in progress. It ends once: by its answer, its deadline or its signal, whichever comes first. */
export class Call {
  readonly info: CallInfo;
  /** Carries out the call at the server. The returned function delivers the answer to the client. */
  readonly run: () => (() => void) | TreeError;
  /** It left the client. From here on a write without an answer has an unknown outcome. */
  sent = false;
  /** Monotonic milliseconds of the client. */
  sentAt = 0;
  readonly #fail: (error: TreeError) => void;
  readonly #timer: Timer;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort: () => void;
  /** Answered, failed, given up or forgotten: nothing more is delivered. */
  #ended = false;

  constructor(
    info: CallInfo,
    run: () => (() => void) | TreeError,
    fail: (error: TreeError) => void,
    clock: Clock,
    options: CallOptions = {},
  ) {
    this.info = info;
    this.run = run;
    this.#fail = fail;
    this.#signal = options.signal;
    this.#onAbort = () => this.#giveUp(options.signal?.reason);
    this.#timer = clock.setTimer(options.deadlineMs ?? DEFAULT_DEADLINE_MS, () => this.#giveUp(), {
      background: true,
    });
    this.#signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** For messages: the kind and the path of the first operation. */
  get what(): string {
    return `${this.info.kind} ${this.info.path}`;
  }

  /** Whether a write without an answer may have been applied. */
  get outcome(): Outcome {
    return this.sent && this.info.kind === "write" ? "unknown" : "none";
  }

  get ended(): boolean {
    return this.#ended;
  }

  answer(deliver: () => void): void {
    if (this.#end()) deliver();
  }

  fail(error: TreeError): void {
    if (this.#end()) this.#fail(error);
  }

  /** The client's process died: the call never settles. */
  forget(): void {
    this.#end();
  }

  #giveUp(cause?: unknown): void {
    this.fail(new CallEnded(this.what, this.outcome, cause));
  }

  /** False when it ended before. The timer and the listener go with it, so that a long-lived signal does not keep dead calls. */
  #end(): boolean {
    if (this.#ended) return false;
    this.#ended = true;
    this.#timer.cancel();
    this.#signal?.removeEventListener("abort", this.#onAbort);
    return true;
  }
}
