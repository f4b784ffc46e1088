import type { Clock } from "@nodeyard/runtime";
import type { CallOptions, Feed, FeedOptions, Op, OpResult, Session, TreeCapabilities } from "../contract.ts";
import { checkPath, TRUSTED } from "../engine/index.ts";
import { CallEnded, CommitFailed, NoNode, TreeClosed, type TreeError } from "../errors.ts";
import { checkSize, describe, MAX_REQUEST_BYTES } from "../request-size.ts";
import { type Found, type Missing, type Reads, TreeCalls } from "../tree-calls.ts";
import type { WriteEnded } from "../under-way.ts";
import type { TreeCore } from "./core.ts";
import { CoreFeed } from "./feed.ts";

/** A store that does not answer for this long (milliseconds) is broken, so the call fails (rule 8). */
const DEFAULT_DEADLINE_MS = 60_000;

/**
 * One session within the process that has the tree open: the contract without a connection. Its ephemeral znodes are deleted when it is
 * closed, or when the tree is next opened.
 *
 * A call takes effect in memory at once and settles when all that it shows is durable (`release`). So its deadline and its signal end
 * only the wait: a write that was given up may be durable later, which its outcome "unknown" says. After a failure of the store every
 * call rejects with it, and the state of the session is "closed".
 */
export class SessionTree extends TreeCalls {
  readonly core: TreeCore;
  readonly capabilities: TreeCapabilities;
  readonly #clock: Clock;
  /** Owner of the ephemeral znodes that this tree creates. */
  readonly #id: bigint;
  readonly #listeners = new Set<(session: Session) => void>();
  readonly #feeds = new Set<CoreFeed>();
  readonly #unsubscribe: () => void;
  /** `close` was called. Calls that wait for the disk still settle. */
  #closed = false;

  constructor(core: TreeCore, clock: Clock, onWrite?: (write: WriteEnded) => void) {
    super(clock, onWrite);
    this.core = core;
    this.#clock = clock;
    this.capabilities = { shared: true, durable: true, maxRequestBytes: MAX_REQUEST_BYTES };
    this.#id = core.openSession("process", 0).id;
    this.#unsubscribe = core.onFailure(() => this.#tellSession());
  }

  /** A session within the process cannot expire while the store works, so its locks are trusted without a time limit. */
  session(): Session {
    const over = this.#closed || this.core.failure !== undefined;
    return {
      id: this.#id,
      epoch: 1,
      state: over ? "closed" : "connected",
      trustedUntil: over ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY,
    };
  }

  /** Called when the tree is closed or its store fails; a session within the process has no other changes. */
  onSession(listener: (session: Session) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** 0, because the tree uses the clock of this process. */
  clockOffset(): number {
    return 0;
  }

  feed(root: string, options: FeedOptions): Feed {
    if (this.#closed) throw new TreeClosed(`feed ${root}`);
    checkPath(root, false);
    const feed: CoreFeed = new CoreFeed(
      this.core,
      root,
      options,
      () => this.counters.events++,
      () => this.#feeds.delete(feed),
    );
    this.#feeds.add(feed);
    return feed;
  }

  /** A second call returns at once. Does not close the core, which other sessions may use. */
  async close(): Promise<void> {
    if (this.#closed) return;
    for (const feed of [...this.#feeds]) feed.end();
    // The ephemeral znodes go durably before `close` resolves, so that a next process finds their locks free.
    this.core.closeSession(this.#id);
    this.#closed = true;
    this.#unsubscribe();
    await new Promise<void>((resolve) => this.core.release(() => resolve()));
    this.#tellSession();
  }

  #tellSession(): void {
    const session = this.session();
    for (const tell of [...this.#listeners]) tell(session);
  }

  protected write(
    ops: readonly Op[],
    options: CallOptions | undefined,
    commit: boolean,
  ): Promise<readonly OpResult[]> {
    return this.#call({ ops }, "unknown", options, () => {
      // All paths before anything is applied. The error has the form that `write` promises: with `commit` a CommitFailed.
      if (commit) ops.forEach(checkOpAt);
      else ops.forEach(checkOp);
      checkSize(ops, MAX_REQUEST_BYTES);
      const outcome = this.core.commit(this.#id, ops.map(owned), TRUSTED);
      if (outcome.error === undefined) return outcome.results;
      throw outcome.error instanceof CommitFailed && !commit ? outcome.error.reason : outcome.error;
    });
  }

  protected read<K extends keyof Reads, M extends Missing>(
    what: K,
    path: string,
    options: CallOptions | undefined,
    missing: M,
  ): Promise<Found<K, M>> {
    return this.#call({ what, path }, "none", options, () => {
      checkPath(path, false);
      const found = this.#at(what, path);
      if (found === undefined && missing === "NoNode") throw new NoNode(path);
      return found as Found<K, M>;
    });
  }

  /** Undefined: the znode does not exist. */
  #at(what: keyof Reads, path: string): Reads[keyof Reads] | undefined {
    // Every read waits until earlier writes are durable, so for a sync nothing else is needed.
    if (what === "sync") return true;
    const stat = this.core.stat(path);
    if (stat === undefined || what === "stat") return stat;
    if (what === "children") return this.core.children(path);
    // A copy, so that a caller cannot change the data in the tree.
    return { data: new Uint8Array(this.core.data(path)), stat };
  }

  /** Runs `act` at once and settles when its result is durable, or with CallEnded after the deadline or the caller's signal. */
  #call<T>(
    asked: { readonly what: string; readonly path: string } | { readonly ops: readonly Op[] },
    outcome: "none" | "unknown",
    options: CallOptions = {},
    act: () => T,
  ): Promise<T> {
    const { signal, deadlineMs = DEFAULT_DEADLINE_MS } = options;
    // As RemoteTree names calls, so that messages do not depend on the store. Made only when an error needs it.
    const named = () => ("ops" in asked ? describe(asked.ops) : `${asked.what} ${asked.path}`);
    return new Promise<T>((resolve, reject) => {
      if (this.#closed) throw new TreeClosed(named());
      if (signal?.aborted) throw new CallEnded(named(), "none", signal.reason);
      const call =
        "ops" in asked ? this.calls.beginWrite(asked.ops) : this.calls.begin(asked.what, asked.path);
      this.counters.calls++;
      this.counters.operations += call.operations;
      let settle: (error: TreeError | undefined) => void;
      let refused: TreeError | undefined;
      try {
        const value = act();
        settle = (error) => (error === undefined ? resolve(value) : reject(error));
      } catch (refusal) {
        refused = refusal as TreeError;
        // A refusal shows the state of the tree too, so it also waits until that is durable.
        settle = (error) => reject(error ?? refusal);
      }
      let settled = false;
      let stopWaiting: (() => void) | undefined;
      this.core.release((error) => {
        settled = true;
        this.calls.end(call, error ?? refused);
        stopWaiting?.();
        settle(error);
      });
      // `release` may call at once; then no timer is needed.
      if (settled) return;
      const giveUp = (cause?: unknown) => {
        // The call remains listed in `calls` until `release` ends it, because later calls wait behind it.
        stopWaiting?.();
        reject(new CallEnded(named(), outcome, cause));
      };
      const onAbort = () => giveUp(signal?.reason);
      const timer = this.#clock.setTimer(deadlineMs, () => giveUp(), { background: true });
      signal?.addEventListener("abort", onAbort, { once: true });
      stopWaiting = () => {
        timer.cancel();
        signal?.removeEventListener("abort", onAbort);
      };
    });
  }
}

/** Reports an invalid path as such, also where ZooKeeper would first report the missing parent. */
function checkOp(op: Op): void {
  checkPath(op.path, op.op === "create" && op.sequential === true);
}

function checkOpAt(op: Op, index: number): void {
  try {
    checkOp(op);
  } catch (error) {
    throw new CommitFailed(index, error as TreeError);
  }
}

/** Copies the data, because the tree keeps it and the caller may reuse its buffer. */
function owned(op: Op): Op {
  return "data" in op && op.data !== undefined ? { ...op, data: new Uint8Array(op.data) } : op;
}
