import type { Clock, Timer } from "@nodeyard/runtime";
import type { Op, OpResult } from "../contract.ts";
import type { Applied } from "../engine/index.ts";
import { CommitFailed, SessionExpired, type TreeError } from "../errors.ts";
import { FollowerReplica, Replica, type Transaction } from "./replica.ts";

/** A change of the tree, for checkers that examine a whole run afterwards. */
export interface AppliedWrite {
  readonly zxid: bigint;
  /** Tree time, milliseconds. */
  readonly at: number;
  /** Name of the client whose session made the change. */
  readonly client: string;
  readonly session: bigint;
  readonly ops: readonly Op[];
  readonly results: readonly OpResult[];
  /** Set when a session ended; `ops` are the deletions of its ephemeral znodes. */
  readonly sessionEnd?: true;
}

/** One list for all servers, as a ZooKeeper ensemble has one: a client may continue its session on another server. */
interface ServerSession {
  readonly client: string;
  readonly timeoutMs: number;
  /** Set while no client is connected; ends the session. */
  expiry: Timer | undefined;
}

/** What the leader says to a write: a refused single operation has its own error, several have a CommitFailed. */
export type Answer =
  | { readonly error?: undefined; readonly results: readonly OpResult[] }
  | { readonly error: TreeError };

/** Servers besides the leader. */
export interface FollowerOptions {
  readonly count: number;
  /** Called for each transaction and follower: how much later than the leader it applies the transaction, in ms. */
  readonly lagMs: () => number;
}

/** The servers' side of all connections: a leader that applies every write, followers that apply it later, and the sessions. */
export class MemoryServer {
  readonly #leader: Replica;
  readonly #followers: readonly FollowerReplica[];
  /** Every change in the order of the leader; empty unless the log is kept. */
  readonly log: AppliedWrite[] = [];
  readonly #clock: Clock;
  /** How far the servers' clock is ahead of the real one, milliseconds. */
  readonly #skewMs: number;
  readonly #keepLog: boolean;
  readonly #sessions = new Map<bigint, ServerSession>();
  #nextSession = 1n;

  constructor(
    clock: Clock,
    skewMs: number,
    keepLog: boolean,
    followers: FollowerOptions = { count: 0, lagMs: () => 0 },
  ) {
    this.#clock = clock;
    this.#skewMs = skewMs;
    this.#keepLog = keepLog;
    this.#leader = new Replica();
    this.#followers = Array.from(
      { length: followers.count },
      () => new FollowerReplica(clock, followers.lagMs),
    );
  }

  /** The leader's znodes. */
  get tree(): Replica["tree"] {
    return this.#leader.tree;
  }

  /** The servers to which a client that has seen `zxid` may connect: ZooKeeper servers refuse a client that has seen newer changes. */
  serversFor(zxid: bigint): readonly Replica[] {
    return [this.#leader, ...this.#followers].filter(({ tree }) => tree.zxid >= zxid);
  }

  /** Tree time, milliseconds since the epoch. It becomes ctime and mtime. */
  now(): number {
    return this.#clock.now() + this.#skewMs;
  }

  /** Opens a session and returns its id. It uses up a zxid, as in ZooKeeper, where it is a transaction. The caller must attach it. */
  open(client: string, timeoutMs: number): bigint {
    const id = this.#nextSession++;
    this.#sessions.set(id, { client, timeoutMs, expiry: undefined });
    this.#apply({ kind: "open" });
    return id;
  }

  has(session: bigint): boolean {
    return this.#sessions.has(session);
  }

  /** The client is connected: its session does not expire. */
  attach(session: bigint): void {
    this.#sessions.get(session)?.expiry?.cancel();
  }

  /** The client is gone: its session expires after its timeout. */
  detach(session: bigint): void {
    const found = this.#sessions.get(session);
    if (found === undefined) return;
    found.expiry?.cancel();
    found.expiry = this.#clock.setTimer(found.timeoutMs, () => this.end(session), { background: true });
  }

  /** Ends a session and deletes its ephemeral znodes. */
  end(session: bigint): void {
    const found = this.#sessions.get(session);
    if (found === undefined) return;
    found.expiry?.cancel();
    this.#sessions.delete(session);
    const ops = this.tree.ephemerals(session).map((path): Op => ({ op: "delete", path }));
    const applied = this.#apply({ kind: "end", session });
    this.#record({
      client: found.client,
      session,
      ops,
      results: ops.map(() => ({ op: "delete" })),
      sessionEnd: true,
    });
    if (applied.error === undefined) this.#leader.tell(applied.events);
  }

  /**
   * Applies all operations or none, at the leader. Followers apply them after their lag; `catchUp` of the client's own server hides
   * that from the writer.
   */
  write(session: bigint, ops: readonly Op[]): Answer {
    const found = this.#sessions.get(session);
    if (found === undefined) return { error: new SessionExpired("a write", undefined, "none") };
    const before = this.tree.zxid;
    const applied = this.#apply({ kind: "write", ops, session, at: this.now() });
    if (applied.error !== undefined)
      return { error: ops.length === 1 ? reasonOf(applied.error) : applied.error };
    // A commit of checks alone changes nothing, so it is not in the log.
    if (this.tree.zxid !== before)
      this.#record({ client: found.client, session, ops, results: applied.results });
    this.#leader.tell(applied.events);
    return applied;
  }

  /** The leader decides; followers receive only what it accepted, so their trees pass through the same states. */
  #apply(transaction: Transaction): Applied {
    const applied = this.#leader.apply(transaction);
    if (applied.error === undefined) for (const follower of this.#followers) follower.follow(transaction);
    return applied;
  }

  #record(write: Omit<AppliedWrite, "zxid" | "at">): void {
    if (this.#keepLog) this.log.push({ zxid: this.tree.zxid, at: this.now(), ...write });
  }
}

function reasonOf(error: TreeError): TreeError {
  return error instanceof CommitFailed ? error.reason : error;
}
