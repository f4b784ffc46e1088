import { type Clock, hexId, type Random } from "@nodeyard/runtime";
import type { OpResult, Stat } from "../contract.ts";
import { type AccessList, type Caller, DataTree, type TreeEvent, type TreeOp } from "../engine/index.ts";
import { SessionExpired, type TreeError } from "../errors.ts";
import { Committer, type Released } from "./committer.ts";
import { Expiry } from "./expiry.ts";
import type { SessionKind, SessionRow, Snapshot, Store } from "./store.ts";

/** The result of a commit: CommitFailed when an operation was refused, StoreFailed after a failure of the store, SessionExpired. */
export type Outcome =
  | { readonly error?: undefined; readonly results: readonly OpResult[] }
  | { readonly error: TreeError };

const NOTHING = new Uint8Array(0);

/**
 * The tree that all sessions of one state folder share: znodes in memory, changes on their way to the disk, sessions
 * and their expiry. All methods are synchronous. Every answer and event must pass `release` before it leaves the process.
 */
export class TreeCore {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #tree: DataTree;
  readonly #committer: Committer;
  readonly #expiry: Expiry;
  readonly #sessions = new Map<bigint, SessionRow>();
  /** Open sessions by kind. The limit of sessions is for those of the wire only. */
  readonly #counts: Record<SessionKind, number> = { process: 0, wire: 0 };
  readonly #eventListeners = new Set<(events: readonly TreeEvent[]) => void>();
  readonly #sessionListeners = new Set<(id: bigint) => void>();
  readonly #failureListeners = new Set<(error: TreeError) => void>();
  #nextSession: bigint;

  constructor(store: Store, snapshot: Snapshot, clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
    this.#expiry = new Expiry(clock, (id) => this.closeSession(id));
    this.#committer = new Committer(store, (error) => {
      this.#expiry.close();
      for (const tell of this.#failureListeners) tell(error);
    });
    this.#tree = new DataTree();
    this.#tree.load(snapshot.znodes, snapshot.zxid);
    // Each opening of the file has its own 2^32 ids, so no id is used twice although the counter is not stored.
    this.#nextSession = (BigInt(snapshot.boot) << 32n) + 1n;
    // Last: ending a process's session changes the tree and is written as any change.
    for (const session of snapshot.sessions) this.#adopt(session);
  }

  /** Zxid of the last change that was applied. */
  get zxid(): bigint {
    return this.#tree.zxid;
  }

  /** The store's failure, once it has failed. From then on nothing is acknowledged. */
  get failure(): TreeError | undefined {
    return this.#committer.failure;
  }

  get znodeCount(): number {
    return this.#tree.size;
  }

  /** Transactions that became durable, which is the number of fsyncs without checkpoints. */
  get batches(): number {
    return this.#committer.batches;
  }

  stat(path: string): Stat | undefined {
    return this.#tree.stat(path);
  }

  /** Data of a znode; the caller must not change it. Empty when the znode does not exist. */
  data(path: string): Uint8Array {
    return this.#tree.data(path) ?? NOTHING;
  }

  /** Data of a znode in the form of the wire protocol, which distinguishes null from empty. */
  content(path: string): Uint8Array | null {
    return this.#tree.content(path) ?? null;
  }

  /** The access list of a znode, for the caller of a read to check. Undefined also when the znode does not exist. */
  acl(path: string): AccessList {
    return this.#tree.acl(path);
  }

  /** Names of a znode's children. */
  children(path: string): string[] {
    return this.#tree.children(path) ?? [];
  }

  /** Paths of a session's ephemeral znodes. */
  ephemerals(session: bigint): string[] {
    return this.#tree.ephemerals(session);
  }

  /** Applies all of `ops` for a session, or none. Events are reported before this returns. */
  commit(session: bigint, ops: readonly TreeOp[], caller: Caller): Outcome {
    const failure = this.#committer.failure;
    if (failure !== undefined) return { error: failure };
    if (!this.#sessions.has(session)) return { error: new SessionExpired("a write") };
    const before = this.#tree.zxid;
    const applied = this.#tree.apply(ops, session, this.#clock.now(), caller);
    if (applied.error !== undefined || this.#tree.zxid === before) return applied;
    this.#changed(applied.touched, applied.events);
    return applied;
  }

  /** Calls `released` when every change so far is durable, which may be at once; with the error when it may not be. */
  release(released: Released): void {
    this.#committer.release(released);
  }

  /**
   * The session counts from the next durable batch on, so its id must pass `release`, as every answer. `timeoutMs` is for wire
   * sessions.
   */
  openSession(kind: SessionKind, timeoutMs: number): SessionRow {
    const session: SessionRow = {
      id: this.#nextSession++,
      kind,
      timeoutMs,
      password: Buffer.from(hexId(this.#random), "hex"),
    };
    this.#enter(session);
    this.#tree.tick();
    this.#committer.session(session.id, session);
    this.#committer.mark(this.#tree.zxid);
    return session;
  }

  session(id: bigint): SessionRow | undefined {
    return this.#sessions.get(id);
  }

  sessionCount(kind: SessionKind): number {
    return this.#counts[kind];
  }

  /** The session's client sent something: restarts its timeout. */
  touch(id: bigint): void {
    this.#expiry.touch(id);
  }

  /** Ends a session (on request, by timeout or after a restart) and deletes its ephemeral znodes. */
  closeSession(id: bigint): void {
    const session = this.#sessions.get(id);
    // After a failure nothing could make the deletions durable; the next start ends the session.
    if (session === undefined || this.failure !== undefined) return;
    this.#sessions.delete(id);
    this.#counts[session.kind]--;
    this.#expiry.stop(id);
    this.#committer.session(id, undefined);
    const ended = this.#tree.endSession(id);
    this.#changed(ended.touched, ended.events);
    for (const tell of this.#sessionListeners) tell(id);
  }

  /** Called synchronously with the events of each change, which is not durable yet: pass `release` before sending them on. */
  onEvents(listener: (events: readonly TreeEvent[]) => void): () => void {
    this.#eventListeners.add(listener);
    return () => this.#eventListeners.delete(listener);
  }

  /** Called after the end of a session, also by timeout. */
  onSessionClosed(listener: (id: bigint) => void): () => void {
    this.#sessionListeners.add(listener);
    return () => this.#sessionListeners.delete(listener);
  }

  /** Called once, when the store fails. */
  onFailure(listener: (error: TreeError) => void): () => void {
    this.#failureListeners.add(listener);
    return () => this.#failureListeners.delete(listener);
  }

  /** Resolves when every applied change is durable or the store has failed. Sessions no longer time out. */
  async stop(): Promise<void> {
    this.#expiry.close();
    await this.#committer.settled();
  }

  /** Takes over a session from an earlier process. Process sessions ended with that process; wire sessions restart their timeout. */
  #adopt(session: SessionRow): void {
    this.#enter(session);
    if (session.kind === "process") this.closeSession(session.id);
  }

  #enter(session: SessionRow): void {
    this.#sessions.set(session.id, session);
    this.#counts[session.kind]++;
    if (session.kind === "wire") this.#expiry.start(session.id, session.timeoutMs);
  }

  #changed(touched: Iterable<string>, events: readonly TreeEvent[]): void {
    for (const path of touched) this.#committer.znode(path, this.#tree.row(path));
    this.#committer.mark(this.#tree.zxid);
    for (const tell of this.#eventListeners) tell(events);
  }
}
