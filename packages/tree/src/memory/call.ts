import type { Clock, Timer } from "@nodeyard/runtime";
import type { CallOptions, Op } from "../contract.ts";
import { CallEnded, type Outcome, type TreeError } from "../errors.ts";

/** A call as faults see it. */
export interface CallInfo {
  readonly client: string;
  readonly kind: "write" | "get" | "stat" | "children" | "sync" | "watch";
  readonly path: string;
  /** Of writes; empty otherwise. */
  readonly ops: readonly Op[];
}

const DEFAULT_DEADLINE_MS = 60_000;

/** A call on its way: it ends once, by its answer, its deadline or its signal, whichever is first. */
export class Call {
  readonly info: CallInfo;
  /** Carries the call out at the server; what it returns delivers the answer to the client. */
  readonly run: () => (() => void) | TreeError;
  sent = false;
  sentAt = 0;
  readonly #fail: (error: TreeError) => void;
  readonly #timer: Timer;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort: () => void;
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

  get what(): string {
    return `${this.info.kind} ${this.info.path}`;
  }

  /** Whether a write that gets no answer may have happened. */
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

  /** Its process died: nobody will ever hear of it. */
  forget(): void {
    this.#end();
  }

  #giveUp(cause?: unknown): void {
    this.fail(new CallEnded(this.what, this.outcome, cause));
  }

  #end(): boolean {
    if (this.#ended) return false;
    this.#ended = true;
    this.#timer.cancel();
    this.#signal?.removeEventListener("abort", this.#onAbort);
    return true;
  }
}
