import { type Clock, defined } from "@nodeyard/runtime";
import type {
  CallOptions,
  CallUnderWay,
  CommitResult,
  Feed,
  FeedOptions,
  Op,
  OpResult,
  Session,
  Stat,
  Tree,
  TreeCapabilities,
  TreeCounters,
} from "./contract.ts";
import { CallsUnderWay, type WriteEnded } from "./under-way.ts";

const NOTHING = new Uint8Array(0);

/** What each kind of read returns for a znode that exists. */
export interface Reads {
  readonly get: { readonly data: Uint8Array; readonly stat: Stat };
  readonly stat: Stat;
  readonly children: readonly string[];
  readonly sync: true;
}

/**
 * What a read does when the znode does not exist: return undefined or reject with NoNode. `stat` is how callers ask for existence, so
 * that it alone returns undefined.
 */
export type Missing = "undefined" | "NoNode";
/** What a read resolves with, by its kind and by what it does when the znode does not exist. */
export type Found<K extends keyof Reads, M extends Missing> =
  | Reads[K]
  | (M extends "NoNode" ? never : undefined);

/**
 * The methods of the contract, built from the two that a store implements: `write` and `read`. The store checks paths and sizes, counts,
 * and rejects with the errors that the contract names; nothing is added here.
 */
export abstract class TreeCalls implements Tree {
  abstract readonly capabilities: TreeCapabilities;
  /** Calls, the operations in them and the events of feeds, since the start. The stores count them. */
  readonly counters: TreeCounters & { calls: number; operations: number; events: number } = {
    calls: 0,
    operations: 0,
    events: 0,
  };
  /** Calls without an answer, which `underWay` lists. */
  protected readonly calls: CallsUnderWay;

  constructor(clock: Clock, onWrite?: (write: WriteEnded) => void) {
    this.calls = new CallsUnderWay(clock, onWrite);
  }

  abstract session(): Session;
  abstract onSession(listener: (session: Session) => void): () => void;
  abstract clockOffset(): number;
  abstract feed(root: string, options: FeedOptions): Feed;
  abstract close(): Promise<void>;
  /** With `commit` every refusal is a CommitFailed, also of a single operation; otherwise it is the operation's own error. */
  protected abstract write(
    ops: readonly Op[],
    options: CallOptions | undefined,
    commit: boolean,
  ): Promise<readonly OpResult[]>;
  /** Reads a path. The store itself handles a missing znode, as `missing` says, which saves a turn of the promise queue. */
  protected abstract read<K extends keyof Reads, M extends Missing>(
    what: K,
    path: string,
    options: CallOptions | undefined,
    missing: M,
  ): Promise<Found<K, M>>;

  /** A call whose caller gave up stays listed until the store answers, because later calls wait behind it. */
  underWay(): readonly CallUnderWay[] {
    return this.calls.list();
  }

  async create(
    path: string,
    data: Uint8Array = NOTHING,
    options: CallOptions & { readonly ephemeral?: boolean; readonly sequential?: boolean } = {},
  ): Promise<{ readonly path: string; readonly stat: Stat }> {
    const { ephemeral = false, sequential = false } = options;
    const [result] = await this.write([{ op: "create", path, data, ephemeral, sequential }], options, false);
    const { path: made, stat } = result as Extract<OpResult, { op: "create" }>;
    return { path: made, stat };
  }

  get(path: string, options?: CallOptions): Promise<Reads["get"]> {
    return this.read("get", path, options, "NoNode");
  }

  stat(path: string, options?: CallOptions): Promise<Stat | undefined> {
    return this.read("stat", path, options, "undefined");
  }

  /** Without a version the data is set whatever the version is. */
  async set(
    path: string,
    data: Uint8Array,
    options: CallOptions & { readonly version?: number } = {},
  ): Promise<Stat> {
    const [result] = await this.write([{ op: "set", path, data, ...versionOf(options) }], options, false);
    return (result as Extract<OpResult, { op: "set" }>).stat;
  }

  async delete(path: string, options: CallOptions & { readonly version?: number } = {}): Promise<void> {
    await this.write([{ op: "delete", path, ...versionOf(options) }], options, false);
  }

  children(path: string, options?: CallOptions): Promise<readonly string[]> {
    return this.read("children", path, options, "NoNode");
  }

  commit<const T extends readonly Op[]>(ops: T, options?: CallOptions): Promise<CommitResult<T>> {
    if (ops.length === 0) return Promise.resolve([] as unknown as CommitResult<T>);
    return this.write(ops, options, true) as unknown as Promise<CommitResult<T>>;
  }

  async sync(path: string, options?: CallOptions): Promise<void> {
    await this.read("sync", path, options, "NoNode");
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function versionOf(options: { readonly version?: number }): { version?: number } {
  return defined({ version: options.version });
}
