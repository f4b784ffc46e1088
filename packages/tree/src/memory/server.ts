import type { Clock, Timer } from "@nodeyard/runtime";
import type { Op, OpResult } from "../contract.ts";
import { DataTree, type TreeEvent } from "../engine/index.ts";
import { CommitFailed, SessionExpired, type TreeError } from "../errors.ts";
import type { PortEvent } from "../remote/port.ts";

/** Something that changed the tree, for checkers that look at a whole run afterwards. */
export interface AppliedWrite {
  readonly zxid: bigint;
  /** Tree time, milliseconds. */
  readonly at: number;
  readonly client: string;
  readonly session: bigint;
  readonly ops: readonly Op[];
  readonly results: readonly OpResult[];
  /** Set when the session ended and its ephemeral znodes with it; `ops` are their deletions. */
  readonly sessionEnd?: true;
}

interface ServerSession {
  readonly client: string;
  readonly timeoutMs: number;
  expiry: Timer | undefined;
}

export type Answer =
  | { readonly error?: undefined; readonly results: readonly OpResult[] }
  | { readonly error: TreeError };

/** The far end of all connections: one data tree, its sessions, and whoever watches. */
export class MemoryServer {
  readonly tree: DataTree;
  readonly log: AppliedWrite[] = [];
  readonly #clock: Clock;
  readonly #skewMs: number;
  readonly #keepLog: boolean;
  readonly #sessions = new Map<bigint, ServerSession>();
  readonly #watchers = new Set<(event: PortEvent) => void>();
  #nextSession = 1n;

  constructor(clock: Clock, maxDataBytes: number, skewMs: number, keepLog: boolean) {
    this.#clock = clock;
    this.#skewMs = skewMs;
    this.#keepLog = keepLog;
    this.tree = new DataTree(maxDataBytes);
  }

  now(): number {
    return this.#clock.now() + this.#skewMs;
  }

  open(client: string, timeoutMs: number): bigint {
    const id = this.#nextSession++;
    this.#sessions.set(id, { client, timeoutMs, expiry: undefined });
    this.tree.tick();
    return id;
  }

  has(session: bigint): boolean {
    return this.#sessions.has(session);
  }

  /** The client is there again: its session no longer runs out. */
  attach(session: bigint): void {
    this.#sessions.get(session)?.expiry?.cancel();
  }

  /** The client is gone: its session ends when its timeout has passed. */
  detach(session: bigint): void {
    const found = this.#sessions.get(session);
    if (found === undefined) return;
    found.expiry?.cancel();
    found.expiry = this.#clock.setTimer(found.timeoutMs, () => this.end(session), { background: true });
  }

  /** Ends a session and deletes what is ephemeral of it. */
  end(session: bigint): void {
    const found = this.#sessions.get(session);
    if (found === undefined) return;
    found.expiry?.cancel();
    this.#sessions.delete(session);
    const ops = this.tree.ephemerals(session).map((path): Op => ({ op: "delete", path }));
    const { events } = this.tree.endSession(session);
    this.#record({
      client: found.client,
      session,
      ops,
      results: ops.map(() => ({ op: "delete" })),
      sessionEnd: true,
    });
    this.#tell(events);
  }

  write(session: bigint, ops: readonly Op[]): Answer {
    const found = this.#sessions.get(session);
    if (found === undefined) return { error: new SessionExpired("a write", undefined, "none") };
    const before = this.tree.zxid;
    const applied = this.tree.apply(ops, session, this.now());
    if (applied.error !== undefined)
      return { error: ops.length === 1 ? reasonOf(applied.error) : applied.error };
    if (this.tree.zxid !== before)
      this.#record({ client: found.client, session, ops, results: applied.results });
    this.#tell(applied.events);
    return applied;
  }

  /** Tells every later change, synchronously, until the function is called. */
  onEvent(watcher: (event: PortEvent) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #record(write: Omit<AppliedWrite, "zxid" | "at">): void {
    if (this.#keepLog) this.log.push({ zxid: this.tree.zxid, at: this.now(), ...write });
  }

  #tell(events: readonly TreeEvent[]): void {
    for (const { type, path } of events) {
      if (type === "childrenChanged") continue;
      for (const tell of this.#watchers) tell({ type, path });
    }
  }
}

function reasonOf(error: TreeError): TreeError {
  return error instanceof CommitFailed ? error.reason : error;
}
