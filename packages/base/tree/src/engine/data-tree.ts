import type { DeleteOp, OpResult, Stat } from "../contract.ts";
import {
  BadArguments,
  BadVersion,
  CommitFailed,
  NoChildrenForEphemerals,
  NodeExists,
  NoNode,
  NotAllowed,
  NotEmpty,
  SessionExpired,
  TreeError,
} from "../errors.ts";
import { type AccessList, type Caller, Permission, permits, resolveAccess, TRUSTED } from "./access.ts";
import type { TreeOp } from "./operations.ts";
import { checkPath, parentOf } from "./paths.ts";
import { fromRow, newZnode, statOf, toRow, type Znode, type ZnodeRow } from "./znode.ts";

/** One change of a path, as watches report it. A commit can cause several events for a path. */
export interface TreeEvent {
  readonly type: "created" | "changed" | "deleted" | "childrenChanged";
  readonly path: string;
  /** The access list of the path at that moment. A client without the right to read gets no event. */
  readonly acl: AccessList;
}

type OpOf<K extends TreeOp["op"]> = Extract<TreeOp, { readonly op: K }>;

/** The outcome of a commit: all of its operations were applied, or none. */
export type Applied =
  | {
      readonly error?: undefined;
      readonly results: readonly OpResult[];
      /** Paths whose row was created, changed or deleted. */
      readonly touched: Iterable<string>;
      readonly events: readonly TreeEvent[];
    }
  | { readonly error: CommitFailed };

const NOTHING = new Uint8Array(0);
/** ZooKeeper appends sequence numbers with leading zeros, so that their order as text is their order as numbers. */
const SEQUENCE_DIGITS = 10;

/**
 * The znodes and ZooKeeper's rules for changing them. No I/O and no clock: `apply` receives the time.
 *
 * Counters match ZooKeeper's DataTree. A sequence number is the count of children ever created. The cversion in a Stat
 * counts creations and deletions (2 * created - present). A deletion also updates the parent's pzxid.
 */
export class DataTree {
  readonly #znodes = new Map<string, Znode>([["/", newZnode(NOTHING, 0n, 0, 0n, undefined)]]);
  /** Ephemeral znodes by session, so that the end of a session costs no walk over the tree. */
  readonly #owned = new Map<bigint, Set<string>>();
  #zxid = 0n;
  /** Paths that the running change altered, with their former state; undefined: the znode did not exist. `#rollBack` uses it. */
  #before = new Map<string, Znode | undefined>();
  /** Events of the running change, in its order. A refused commit causes none. */
  #events: TreeEvent[] = [];

  get zxid(): bigint {
    return this.#zxid;
  }

  get size(): number {
    return this.#znodes.size;
  }

  /** Fills an empty tree with stored rows, in any order. */
  load(rows: Iterable<ZnodeRow>, zxid: bigint): void {
    this.#zxid = zxid;
    for (const row of rows) {
      this.#znodes.set(row.path, fromRow(row));
      if (row.ephemeralOwner !== 0n) this.#own(row.ephemeralOwner, row.path);
    }
    // Sets of children are not stored. They are derived when all rows are there, since a child may come before its parent.
    for (const path of this.#znodes.keys()) {
      if (path !== "/") this.#znodes.get(parentOf(path))?.children.add(nameOf(path));
    }
  }

  stat(path: string): Stat | undefined {
    const node = this.#znodes.get(path);
    return node === undefined ? undefined : statOf(node);
  }

  /** The data; empty when it is null. Undefined when the znode does not exist. */
  data(path: string): Uint8Array | undefined {
    const node = this.#znodes.get(path);
    return node === undefined ? undefined : (node.data ?? NOTHING);
  }

  /** The data in the form of the wire protocol, null included. */
  content(path: string): Uint8Array | null | undefined {
    return this.#znodes.get(path)?.data;
  }

  acl(path: string): AccessList {
    return this.#znodes.get(path)?.acl;
  }

  children(path: string): string[] | undefined {
    const node = this.#znodes.get(path);
    return node === undefined ? undefined : [...node.children];
  }

  ephemerals(session: bigint): string[] {
    return [...(this.#owned.get(session) ?? [])];
  }

  /** The row to store for a path; undefined when the znode does not exist. */
  row(path: string): ZnodeRow | undefined {
    const node = this.#znodes.get(path);
    return node === undefined ? undefined : toRow(path, node);
  }

  /** Uses up a zxid for a change that touches no znode, such as a new session. */
  tick(): void {
    this.#zxid++;
  }

  /** Applies all of `ops` in order, or none (`CommitFailed`). `now` in ms becomes ctime and mtime. A refused commit uses no zxid. */
  apply(ops: readonly TreeOp[], session: bigint, now: number, caller: Caller = TRUSTED): Applied {
    const zxid = this.#zxid + 1n;
    const results: OpResult[] = [];
    for (const op of ops) {
      try {
        results.push(this.#one(op, session, zxid, now, caller));
      } catch (error) {
        // Earlier operations of the commit have changed the tree already.
        this.#rollBack();
        if (!(error instanceof TreeError)) throw error;
        return { error: new CommitFailed(results.length, error) };
      }
    }
    // A commit of checks only changes nothing and uses no zxid.
    if (this.#before.size > 0) this.#zxid = zxid;
    return { results, ...this.#taken() };
  }

  /** Deletes the ephemeral znodes of a session. */
  endSession(session: bigint): { readonly touched: Iterable<string>; readonly events: readonly TreeEvent[] } {
    this.#zxid++;
    for (const path of this.ephemerals(session)) this.#remove(path, this.#zxid);
    this.#owned.delete(session);
    return this.#taken();
  }

  /** What the change that just ended did; the next one starts with nothing. */
  #taken(): { touched: Iterable<string>; events: readonly TreeEvent[] } {
    const taken = { touched: this.#before.keys(), events: this.#events };
    this.#before = new Map();
    this.#events = [];
    return taken;
  }

  #one(op: TreeOp, session: bigint, zxid: bigint, now: number, caller: Caller): OpResult {
    switch (op.op) {
      case "create":
        return this.#create(op, session, zxid, now, caller);
      case "set":
        return this.#set(op, zxid, now, caller);
      case "setAcl":
        return this.#setAcl(op, caller);
      case "delete":
        return this.#delete(op, zxid, caller);
      case "check":
        checkVersion(op, this.#demand(op.path, Permission.read, caller).version);
        return { op: "check" };
    }
  }

  #create(op: OpOf<"create">, session: bigint, zxid: bigint, now: number, caller: Caller): OpResult {
    // The path with its digits must be valid: "/." is invalid, "/.0000000000" is valid.
    checkPath(op.sequential ? op.path + digits(0) : op.path, false);
    const data = op.data === undefined ? NOTHING : op.data;
    const acl = op.acl && resolveAccess(op.path, op.acl, caller);
    // The order of these refusals is ZooKeeper's, because a client sees only the first one.
    const parentPath = parentOf(op.path);
    const parent = this.#znodes.get(parentPath);
    if (parent === undefined) throw new NoNode(parentPath);
    if (!permits(parent.acl, Permission.create, caller)) throw new NotAllowed(op.path);
    const path = op.sequential ? op.path + digits(parent.cversion) : op.path;
    if (this.#znodes.has(path)) throw new NodeExists(path);
    if (parent.ephemeralOwner !== 0n) throw new NoChildrenForEphemerals(path);
    if (op.ephemeral && session === 0n) throw new SessionExpired(`create ${path}`);
    this.#touch(parentPath);
    this.#touch(path);
    const made = newZnode(data, zxid, now, op.ephemeral ? session : 0n, acl);
    this.#znodes.set(path, made);
    const changed = this.#znodes.get(parentPath)!;
    changed.children.add(nameOf(path));
    changed.cversion++;
    changed.pzxid = zxid;
    if (op.ephemeral) this.#own(session, path);
    this.#events.push(
      { type: "created", path, acl },
      { type: "childrenChanged", path: parentPath, acl: parent.acl },
    );
    return { op: "create", path, stat: statOf(made) };
  }

  #set(op: OpOf<"set">, zxid: bigint, now: number, caller: Caller): OpResult {
    const node = this.#demand(op.path, Permission.write, caller);
    checkVersion(op, node.version);
    this.#touch(op.path);
    node.data = op.data;
    node.version++;
    node.mzxid = zxid;
    node.mtime = now;
    this.#events.push({ type: "changed", path: op.path, acl: node.acl });
    return { op: "set", stat: statOf(node) };
  }

  /** Changes the access list. As in ZooKeeper it uses a zxid that no Stat shows, and causes no event. */
  #setAcl(op: OpOf<"setAcl">, caller: Caller): OpResult {
    checkPath(op.path, false);
    const acl = resolveAccess(op.path, op.acl, caller);
    const node = this.#demand(op.path, Permission.admin, caller);
    checkVersion(op, node.aversion);
    this.#touch(op.path);
    node.acl = acl;
    node.aversion++;
    return { op: "set", stat: statOf(node) };
  }

  /** The right to delete a znode is given by the access list of its parent, as in ZooKeeper. */
  #delete(op: DeleteOp, zxid: bigint, caller: Caller): OpResult {
    checkPath(op.path, false);
    if (op.path === "/") throw new BadArguments(op.path, "the root cannot be deleted");
    if (!permits(this.acl(parentOf(op.path)), Permission.delete, caller)) throw new NotAllowed(op.path);
    // The list of the znode itself does not matter here.
    const node = this.#demand(op.path, 0, TRUSTED);
    checkVersion(op, node.version);
    if (node.children.size > 0) throw new NotEmpty(op.path);
    this.#remove(op.path, zxid);
    return { op: "delete" };
  }

  /** Removes a znode without children, without a check of versions or rights. */
  #remove(path: string, zxid: bigint): void {
    const parentPath = parentOf(path);
    this.#touch(parentPath);
    this.#touch(path);
    const node = this.#znodes.get(path)!;
    this.#znodes.delete(path);
    if (node.ephemeralOwner !== 0n) this.#owned.get(node.ephemeralOwner)?.delete(path);
    const parent = this.#znodes.get(parentPath)!;
    parent.children.delete(nameOf(path));
    parent.pzxid = zxid;
    this.#events.push(
      { type: "deleted", path, acl: node.acl },
      { type: "childrenChanged", path: parentPath, acl: parent.acl },
    );
  }

  /** The znode, if it exists and its access list grants the caller one of the permissions. Throws the refusal otherwise. */
  #demand(path: string, permission: number, caller: Caller): Znode {
    checkPath(path, false);
    const node = this.#znodes.get(path);
    if (node === undefined) throw new NoNode(path);
    if (!permits(node.acl, permission, caller)) throw new NotAllowed(path);
    return node;
  }

  /** Both indexes must agree: `endSession` removes what this names. */
  #own(session: bigint, path: string): void {
    const owned = this.#owned.get(session);
    if (owned === undefined) this.#owned.set(session, new Set([path]));
    else owned.add(path);
  }

  /** Saves a path's state before its first alteration. The set of children is not copied; `rollBack` repairs it. */
  #touch(path: string): void {
    if (this.#before.has(path)) return;
    const node = this.#znodes.get(path);
    this.#before.set(path, node === undefined ? undefined : { ...node });
  }

  /** Undoes the operations of a refused commit. */
  #rollBack(): void {
    for (const [path, before] of this.#before) {
      const after = this.#znodes.get(path);
      if (after?.ephemeralOwner) this.#owned.get(after.ephemeralOwner)?.delete(path);
      if (before === undefined) this.#znodes.delete(path);
      else {
        this.#znodes.set(path, before);
        if (before.ephemeralOwner !== 0n) this.#own(before.ephemeralOwner, path);
      }
    }
    // All paths have their former state. Now repair the sets of children of their parents.
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

function checkVersion(op: { readonly path: string; readonly version?: number }, version: number): void {
  if (op.version !== undefined && op.version !== version) throw new BadVersion(op.path);
}

function digits(count: number): string {
  return String(count).padStart(SEQUENCE_DIGITS, "0");
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
