import { isDeepStrictEqual } from "node:util";
import { nodeStates, requestStates } from "@nodeyard/model";
import type { AppliedWrite, Op } from "@nodeyard/tree";
import { DURABLE, isUser, Locks } from "./locks.ts";

export interface Znode {
  readonly data: Record<string, unknown>;
  readonly version: number;
  /** The record was overwritten with unreadable text: `data` is what it said before, which continues to count. */
  readonly damaged?: true;
}

/** A record that one operation of a write created, changed or deleted. */
export interface Change {
  readonly id: string;
  /** Undefined: the operation created it. */
  readonly before: Znode | undefined;
  /** Undefined: the operation deleted it. */
  readonly after: Znode | undefined;
  readonly op: Exclude<Op, { op: "check" }>;
  readonly write: AppliedWrite;
  /** Whether the client held the record's lock before the write. */
  readonly held: boolean;
}

/** A moment by both clocks, milliseconds: the tree's may be set back or forward, the other never jumps. */
export interface Moment {
  readonly tree: number;
  readonly steady: number;
}

const NODE = /^\/nodepool\/nodes\/(\d{10})$/;
const NODE_LOCK = /^\/nodepool\/nodes\/(\d{10})\/lock\/(.+)$/;
const REQUEST = /^\/nodepool\/requests\/([^/]+)$/;
const REQUEST_LOCK = /^\/nodepool\/requests-lock\/([^/]+)\/(.+)$/;

const STATES: ReadonlySet<unknown> = new Set([...nodeStates, ...requestStates]);
const utf8 = new TextDecoder("utf-8", { fatal: true });

interface Listener {
  readonly node: (change: Change) => void;
  readonly request: (change: Change) => void;
}

/** The tree as its writes made it: records, and the contenders for their locks. */
export class Replay {
  readonly nodes = new Map<string, Znode>();
  readonly requests = new Map<string, Znode>();
  readonly nodeLocks = new Locks();
  readonly requestLocks = new Locks();
  /** When the present write was made, by a clock that never jumps, milliseconds. */
  now = 0;
  /**
   * How far a launcher's wall clock may be off at most without being distrusted, by client, milliseconds: what it reads between the jump
   * and its next write is off by as much (rule 8: jumps above 30 s are noticed).
   */
  readonly believed = new Map<string, number>();
  /** Whether a clock jumped further than that. */
  setFar = false;
  /** When a client wrote first. */
  readonly started = new Map<string, Moment>();
  /** When a launcher last lost an event of the tree, by client, milliseconds. */
  readonly missed = new Map<string, number>();
  /** Nodes whose last user left with the present write. */
  readonly left = new Set<string>();
  /** Nodes whose locks a session held when it ended, by session. */
  readonly heldToTheEnd = new Map<bigint, ReadonlySet<string>>();

  /** Carries one write out; `listener` is called with each change of a record, in the order of the operations. */
  take(write: AppliedWrite, at: number, listener: Listener): void {
    this.now = at;
    if (!this.started.has(write.client)) this.started.set(write.client, { tree: write.at, steady: at });
    this.left.clear();
    if (write.sessionEnd === true)
      this.heldToTheEnd.set(write.session, new Set(this.nodeLocks.heldBy(write.client)));
    const held = this.#heldBefore(write);
    for (const [index, op] of write.ops.entries()) {
      if (op.op === "check") continue;
      const result = write.results[index];
      const path = result?.op === "create" ? result.path : op.path;
      const [lock, requestLock] = [NODE_LOCK.exec(path), REQUEST_LOCK.exec(path)];
      if (lock) this.#nodeLock(write, op, lock[1]!, lock[2]!);
      else if (requestLock) this.#requestLock(write, op, requestLock[1]!, requestLock[2]!);
      else this.#record(write, op, path, held, listener);
    }
  }

  #record(
    write: AppliedWrite,
    op: Change["op"],
    path: string,
    held: ReadonlySet<string>,
    listener: Listener,
  ): void {
    for (const [kind, pattern, records] of [
      ["node", NODE, this.nodes],
      ["request", REQUEST, this.requests],
    ] as const) {
      const id = pattern.exec(path)?.[1];
      if (id === undefined) continue;
      const before = records.get(id);
      const version = (before?.version ?? -1) + 1;
      const data = op.op === "delete" ? undefined : dataOf(op);
      if (before !== undefined && op.op !== "delete" && (data === undefined || isRepair(before, data))) {
        records.set(id, { data: before.data, version, ...(data === undefined && { damaged: true }) });
        continue;
      }
      const after = data === undefined ? undefined : { data, version };
      if (after === undefined) records.delete(id);
      else records.set(id, after);
      listener[kind]({ id, before, after, op, write, held: held.has(path) });
    }
  }

  #nodeLock(write: AppliedWrite, op: Change["op"], node: string, name: string): void {
    if (op.op !== "delete") {
      const text = Buffer.from(op.data ?? "").toString();
      const durable = text.startsWith("Nodeyard:lease:") || text.startsWith("NodePool:metastatic:");
      return this.nodeLocks.add(node, name, durable ? DURABLE : write.client, this.now);
    }
    const client = this.nodeLocks.remove(node, name);
    const others = this.nodeLocks.line(node);
    if (client !== undefined && isUser(client) && !others.some((other) => isUser(other.client)))
      this.left.add(node);
  }

  #requestLock(write: AppliedWrite, op: Change["op"], request: string, name: string): void {
    if (op.op === "delete") this.requestLocks.remove(request, name);
    else this.requestLocks.add(request, name, write.client, this.now);
  }

  /** Paths of the write's records whose locks its client held before it. */
  #heldBefore({ ops, client }: AppliedWrite): ReadonlySet<string> {
    const held = new Set<string>();
    for (const { op, path } of ops) {
      if (op === "check") continue;
      const node = NODE.exec(path)?.[1];
      if (node !== undefined && this.nodeLocks.holder(node) === client) held.add(path);
      const request = REQUEST.exec(path)?.[1];
      if (request !== undefined && this.requestLocks.holder(request) === client) held.add(path);
    }
    return held;
  }
}

/** Undefined for an unreadable record. */
function dataOf(op: Extract<Op, { op: "create" | "set" }>): Znode["data"] | undefined {
  try {
    const data = JSON.parse(utf8.decode(op.data)) as Znode["data"];
    return STATES.has(data.state) && typeof (data.provider ?? "") === "string" ? data : undefined;
  } catch {
    return undefined;
  }
}

function isRepair({ data, damaged }: Znode, after: Znode["data"]): boolean {
  return damaged === true && isDeepStrictEqual(data, after);
}
