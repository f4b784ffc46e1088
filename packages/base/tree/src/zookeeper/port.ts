import type { Clock } from "@nodeyard/runtime";
import {
  ClientSource,
  MultiFailed,
  multiOpRequest,
  multiResults,
  wire,
  type ZooKeeper,
} from "@nodeyard/zookeeper";
import type { CallOptions, Op, OpResult, Session, Stat, TreeCapabilities } from "../contract.ts";
import { parentOf } from "../engine/index.ts";
import { CommitFailed, ReadsOnly, type TreeError } from "../errors.ts";
import type { Found, Port, PortEvent, Reply } from "../remote/port.ts";
import { describe, requestBytes } from "../request-size.ts";
import { ClockOffset, type Reading, readingOf } from "./clock-offset.ts";
import { type ClientError, treeError } from "./errors.ts";
import { commitResults } from "./results.ts";

const { OpCode } = wire;
/** Share of the session timeout for which locks are trusted after the last answered request (rule 1). */
const TRUST = 2 / 3;

/**
 * A connection to ZooKeeper servers: translates operations, results and errors between the contract and the client of
 * `@nodeyard/zookeeper`, which owns connections, sessions and deadlines. It uses create2 and multi, so that replies contain all that a
 * feed needs.
 */
export class ZooKeeperPort implements Port {
  readonly capabilities: TreeCapabilities;
  readonly #client: ZooKeeper;
  readonly #clock: Clock;
  readonly #source: ClientSource;
  readonly #listeners = new Set<(session: Session) => void>();
  readonly #offset = new ClockOffset();
  readonly #readsOnly: boolean;
  #cause: Error | undefined;

  constructor(client: ZooKeeper, clock: Clock, maxRequestBytes: number, readsOnly = false) {
    this.#client = client;
    this.#clock = clock;
    this.#readsOnly = readsOnly;
    this.capabilities = { shared: true, durable: true, maxRequestBytes };
    client.onStatus(({ cause }) => {
      this.#cause = cause;
      const session = this.session();
      for (const tell of [...this.#listeners]) tell(session);
    });
    // Created after the status listener above, so that feeds learn of a new session before their watches are set.
    this.#source = new ClientSource(client, readsOnly);
  }

  /**
   * `trustedUntil` counts from when the last answered request was sent, not from its answer: the server restarted the timeout somewhere
   * between the two.
   */
  session(): Session {
    const { id, epoch, state, lastAnsweredSentAt, timeoutMs } = this.#client.session;
    const over = state === "closed" || state === "expired";
    return {
      id,
      epoch,
      state,
      trustedUntil: over ? Number.NEGATIVE_INFINITY : lastAnsweredSentAt + TRUST * timeoutMs,
      ...(this.#cause && { cause: this.#cause }),
    };
  }

  onSession(listener: (session: Session) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** 0 before the first answered write. */
  clockOffset(): number {
    return this.#offset.value;
  }

  write(ops: readonly Op[], reply: Reply<readonly OpResult[]>, options: CallOptions | undefined): void {
    const first = ops[0] as Op;
    if (this.#readsOnly) return reply(new ReadsOnly(describe(ops)), undefined);
    // A check exists on the wire only within a multi.
    if (ops.length === 1 && first.op !== "check") this.#single(first, reply, options);
    else this.#multi(ops, reply, options);
  }

  get(path: string, reply: Reply<Found>, options?: CallOptions): void {
    this.#source.get(path, translated("get", path, reply), options);
  }

  stat(path: string, reply: Reply<Stat>, options?: CallOptions): void {
    this.#source.stat(path, translated("stat", path, reply), options);
  }

  children(path: string, reply: Reply<readonly string[]>, options?: CallOptions): void {
    this.#source.children(path, translated("children", path, reply), options);
  }

  sync(path: string, reply: Reply<true>, options?: CallOptions): void {
    this.#source.sync(
      path,
      (error) => {
        if (error === undefined) reply(undefined, true);
        else reply(treeError(error as ClientError, `sync ${path}`, path, 0, 0, "none"), undefined);
      },
      options,
    );
  }

  watch(root: string, onEvent: (event: PortEvent) => void, onReady: () => void): () => Promise<void> {
    return this.#source.watch(root, onEvent, onReady);
  }

  /** Ends the session, so that its locks are free at once and not after the timeout. */
  close(): Promise<void> {
    this.#source.close();
    return this.#client.close();
  }

  /** Sends one operation as a request of its own, whose reply has the Stat; the reply of a multi has none for a create. */
  #single(
    op: Exclude<Op, { op: "check" }>,
    reply: Reply<readonly OpResult[]>,
    options: CallOptions | undefined,
  ): void {
    const sent = readingOf(this.#clock);
    this.#submit(
      [op],
      () => multiOpRequest(op),
      (error, response) => {
        if (error !== undefined) {
          reply(this.#refusal(error, [op]), undefined);
          return;
        }
        const { path, stat } = response as { readonly path: string; readonly stat: Stat };
        if (op.op === "delete") {
          reply(undefined, [{ op: "delete" }]);
          return;
        }
        this.#learn(stat.mtime, sent);
        // The path with its digits, if it is sequential.
        reply(undefined, op.op === "create" ? [{ op: "create", path, stat }] : [{ op: "set", stat }]);
      },
      reply,
      options,
    );
  }

  /** Sends all operations as one multi. Stats of creates are computed (`commitResults`), because the reply of a multi has none. */
  #multi(ops: readonly Op[], reply: Reply<readonly OpResult[]>, options: CallOptions | undefined): void {
    const sent = readingOf(this.#clock);
    this.#submit(
      ops,
      () => ({ type: OpCode.multi, ops: ops.map(multiOpRequest) }),
      (error, response) => {
        if (error !== undefined) {
          reply(this.#refusal(error, ops), undefined);
          return;
        }
        const { results } = response as { readonly results: readonly wire.MultiResult[] };
        const client = this.#client;
        // An Error when the multi was refused: the reply itself has no error then, its results have.
        const answered = multiResults(ops, results, client.lastZxid);
        if (answered instanceof Error) {
          reply(this.#refusal(answered, ops), undefined);
          return;
        }
        const now = Math.round(this.#clock.now() + this.#offset.value);
        const done = commitResults(ops, answered, client.session.id, now);
        // Only the Stat of a set comes from the server; those of creates are computed from our own estimate of its time.
        for (const result of done) {
          if (result.op !== "set") continue;
          this.#learn(result.stat.mtime, sent);
          break;
        }
        reply(undefined, done);
      },
      reply,
      options,
    );
  }

  /** Sends a request. An encoding error is reported to `reply` like a refusal. */
  #submit(
    ops: readonly Op[],
    request: () => Parameters<ZooKeeper["submit"]>[0],
    onReply: (error: ClientError | undefined, response: unknown) => void,
    reply: Reply<readonly OpResult[]>,
    options: CallOptions | undefined,
  ): void {
    try {
      this.#client.submit(request(), onReply, options);
    } catch (error) {
      reply(this.#refusal(error as ClientError, ops), undefined);
    }
  }

  /** Translates a refusal. NoNode for a create means that the parent is missing, so the error names the parent. */
  #refusal(error: ClientError, ops: readonly Op[]): TreeError {
    if (error instanceof MultiFailed) {
      const reason = this.#refusal(error.failure, [ops[error.index] as Op]);
      return ops.length === 1 ? reason : new CommitFailed(error.index, reason);
    }
    const op = ops[0] as Op;
    const path = error.code === "zookeeper.no_node" && op.op === "create" ? parentOf(op.path) : op.path;
    return treeError(error, describe(ops), path, requestBytes(ops), this.capabilities.maxRequestBytes);
  }

  /** Measures the tree's clock: `treeTime` is the server's time of a write that was sent at `sent`. */
  #learn(treeTime: number, sent: Reading): void {
    this.#offset.learn(treeTime, sent, readingOf(this.#clock));
  }
}

/** The callback of the client for a reply of the port. The sizes of 0 are for a message that reads cannot cause. */
function translated<T>(
  what: string,
  path: string,
  reply: Reply<T>,
): (error: Error | undefined, value: T | undefined) => void {
  return (error, value) =>
    reply(error && treeError(error as ClientError, `${what} ${path}`, path, 0, 0), value);
}
