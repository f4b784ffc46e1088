import type { CreateOp, DeleteOp, Op, OpResult, SetOp, Stat } from "../contract.ts";
import {
  BadArguments,
  BadVersion,
  CommitFailed,
  NoChildrenForEphemerals,
  NodeExists,
  NoNode,
  NotEmpty,
  SessionExpired,
  TreeError,
} from "../errors.ts";
import { checkPath, parentOf } from "./paths.ts";
import { fromRow, newZnode, statOf, toRow, type Znode, type ZnodeRow } from "./znode.ts";

export interface TreeEvent {
  readonly type: "created" | "changed" | "deleted" | "childrenChanged";
  readonly path: string;
}

export type Applied =
  | {
      readonly error?: undefined;
      readonly results: readonly OpResult[];
      /** Paths whose row changed, came or went. */
      readonly touched: Iterable<string>;
      readonly events: readonly TreeEvent[];
    }
  | { readonly error: CommitFailed };

const NOTHING = new Uint8Array(0);
const SEQUENCE_DIGITS = 10;

/**
 * The znodes, and the rules by which ZooKeeper changes them. No I/O, no time: `apply` is told both.
 *
 * Counters are as ZooKeeper's DataTree shows them: a sequence number is the count of children ever created, the cversion
 * in a Stat counts creations and deletions (2 * created - present), a deletion moves the parent's pzxid as well.
 */
export class DataTree {
  readonly #znodes = new Map<string, Znode>([["/", newZnode(NOTHING, 0n, 0, 0n)]]);
  readonly #owned = new Map<bigint, Set<string>>();
  #zxid = 0n;
  /** What the running change altered, as it was before; undefined: it was not there. */
  #before = new Map<string, Znode | undefined>();
  #events: TreeEvent[] = [];

  get zxid(): bigint {
    return this.#zxid;
  }

  get size(): number {
    return this.#znodes.size;
  }

  /** Fills an empty tree with rows that were read back; parents may come after their children. */
  load(rows: Iterable<ZnodeRow>, zxid: bigint): void {
    this.#zxid = zxid;
    for (const row of rows) {
      this.#znodes.set(row.path, fromRow(row));
      if (row.ephemeralOwner !== 0n) this.#own(row.ephemeralOwner, row.path);
    }
    for (const path of this.#znodes.keys()) {
      if (path !== "/") this.#znodes.get(parentOf(path))?.children.add(nameOf(path));
    }
  }

  stat(path: string): Stat | undefined {
    const node = this.#znodes.get(path);
    return node === undefined ? undefined : statOf(node);
  }

  data(path: string): Uint8Array | undefined {
    return this.#znodes.get(path)?.data;
  }

  children(path: string): string[] | undefined {
    const node = this.#znodes.get(path);
    return node === undefined ? undefined : [...node.children];
  }

  ephemerals(session: bigint): string[] {
    return [...(this.#owned.get(session) ?? [])];
  }

  /** What the disk is to hold of a path; undefined when it is gone. */
  row(path: string): ZnodeRow | undefined {
    const node = this.#znodes.get(path);
    return node === undefined ? undefined : toRow(path, node);
  }

  /** Counts a change that touches no znode, such as a new session. */
  tick(): void {
    this.#zxid++;
  }

  /** All of `ops` in order, or none, with `CommitFailed`; `now` in ms becomes ctime and mtime. A refusal costs no zxid. */
  apply(ops: readonly Op[], session: bigint, now: number): Applied {
    const zxid = this.#zxid + 1n;
    const results: OpResult[] = [];
    for (const op of ops) {
      try {
        results.push(this.#one(op, session, zxid, now));
      } catch (error) {
        this.#rollBack();
        if (!(error instanceof TreeError)) throw error;
        return { error: new CommitFailed(results.length, error) };
      }
    }
    // Checks alone change nothing.
    if (this.#before.size > 0) this.#zxid = zxid;
    return { results, ...this.#taken() };
  }

  /** Deletes what is ephemeral of a session. */
  endSession(session: bigint): { readonly touched: Iterable<string>; readonly events: readonly TreeEvent[] } {
    this.#zxid++;
    for (const path of this.ephemerals(session)) this.#remove(path, this.#zxid);
    this.#owned.delete(session);
    return this.#taken();
  }

  #taken(): { touched: Iterable<string>; events: readonly TreeEvent[] } {
    const taken = { touched: this.#before.keys(), events: this.#events };
    this.#before = new Map();
    this.#events = [];
    return taken;
  }

  #one(op: Op, session: bigint, zxid: bigint, now: number): OpResult {
    switch (op.op) {
      case "create":
        return this.#create(op, session, zxid, now);
      case "set":
        return this.#set(op, zxid, now);
      case "delete":
        return this.#delete(op, zxid);
      case "check":
        this.#demand(op.path, op.version);
        return { op: "check" };
    }
  }

  #create(op: CreateOp, session: bigint, zxid: bigint, now: number): OpResult {
    // The finished name counts: "/." is no path, "/.0000000000" is one.
    checkPath(op.sequential ? op.path + digits(0) : op.path, false);
    const data = op.data ?? NOTHING;
    const parentPath = parentOf(op.path);
    const parent = this.#znodes.get(parentPath);
    if (parent === undefined) throw new NoNode(parentPath);
    const path = op.sequential ? op.path + digits(parent.created) : op.path;
    if (this.#znodes.has(path)) throw new NodeExists(path);
    if (parent.owner !== 0n) throw new NoChildrenForEphemerals(path);
    if (op.ephemeral && session === 0n) throw new SessionExpired(`create ${path}`);
    this.#touch(parentPath);
    this.#touch(path);
    const made = newZnode(data, zxid, now, op.ephemeral ? session : 0n);
    this.#znodes.set(path, made);
    const changed = this.#znodes.get(parentPath)!;
    changed.children.add(nameOf(path));
    changed.created++;
    changed.pzxid = zxid;
    if (op.ephemeral) this.#own(session, path);
    this.#events.push({ type: "created", path }, { type: "childrenChanged", path: parentPath });
    return { op: "create", path, stat: statOf(made) };
  }

  #set(op: SetOp, zxid: bigint, now: number): OpResult {
    const node = this.#demand(op.path, op.version);
    this.#touch(op.path);
    node.data = op.data;
    node.version++;
    node.mzxid = zxid;
    node.mtime = now;
    this.#events.push({ type: "changed", path: op.path });
    return { op: "set", stat: statOf(node) };
  }

  #delete(op: DeleteOp, zxid: bigint): OpResult {
    if (op.path === "/") throw new BadArguments(op.path, "the root cannot be deleted");
    const node = this.#demand(op.path, op.version);
    if (node.children.size > 0) throw new NotEmpty(op.path);
    this.#remove(op.path, zxid);
    return { op: "delete" };
  }

  #remove(path: string, zxid: bigint): void {
    const parentPath = parentOf(path);
    this.#touch(parentPath);
    this.#touch(path);
    const node = this.#znodes.get(path)!;
    this.#znodes.delete(path);
    if (node.owner !== 0n) this.#owned.get(node.owner)?.delete(path);
    const parent = this.#znodes.get(parentPath)!;
    parent.children.delete(nameOf(path));
    parent.pzxid = zxid;
    this.#events.push({ type: "deleted", path }, { type: "childrenChanged", path: parentPath });
  }

  #demand(path: string, version: number | undefined): Znode {
    checkPath(path, false);
    const node = this.#znodes.get(path);
    if (node === undefined) throw new NoNode(path);
    if (version !== undefined && version !== node.version) throw new BadVersion(path);
    return node;
  }

  #own(session: bigint, path: string): void {
    const owned = this.#owned.get(session);
    if (owned === undefined) this.#owned.set(session, new Set([path]));
    else owned.add(path);
  }

  /** Remembers a path as it is before its first alteration. Sets of children are kept: `rollBack` mends them. */
  #touch(path: string): void {
    if (this.#before.has(path)) return;
    const node = this.#znodes.get(path);
    this.#before.set(path, node === undefined ? undefined : { ...node });
  }

  #rollBack(): void {
    for (const [path, before] of this.#before) {
      const after = this.#znodes.get(path);
      if (after?.owner) this.#owned.get(after.owner)?.delete(path);
      if (before === undefined) this.#znodes.delete(path);
      else {
        this.#znodes.set(path, before);
        if (before.owner !== 0n) this.#own(before.owner, path);
      }
    }
    // Every path is back; now each parent that is left lists it, or does not.
    for (const [path, before] of this.#before) {
      if (path === "/") continue;
      const siblings = this.#znodes.get(parentOf(path))?.children;
      if (before === undefined) siblings?.delete(nameOf(path));
      else siblings?.add(nameOf(path));
    }
    this.#before = new Map();
    this.#events = [];
  }
}

function digits(count: number): string {
  return String(count).padStart(SEQUENCE_DIGITS, "0");
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
