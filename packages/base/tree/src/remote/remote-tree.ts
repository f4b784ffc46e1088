import type { Clock, Random } from "@nodeyard/runtime";
import type {
  CallOptions,
  CallUnderWay,
  Feed,
  FeedOptions,
  Op,
  OpResult,
  Session,
  TreeCapabilities,
} from "../contract.ts";
import { checkPath } from "../engine/index.ts";
import { BadArguments, CallEnded, CommitFailed, NoNode, TreeClosed, TreeError } from "../errors.ts";
import { checkSize, describe } from "../request-size.ts";
import { type Found, type Missing, type Reads, TreeCalls } from "../tree-calls.ts";
import type { CallsUnderWay, WriteEnded } from "../under-way.ts";
import { OwnWrites } from "./own-writes.ts";
import type { Port, Reply } from "./port.ts";
import { RemoteFeed } from "./remote-feed.ts";

/** What is the same for every store behind a port. */
export interface RemoteTreeOptions {
  /** Times calls under way and delays feeds. The deadline of a call is the port's. */
  readonly clock: Clock;
  /** Draws the moments of comparisons. */
  readonly random: Random;
  /** After a reconnect, feeds start their comparison at a random moment within this span (ms), so that not all processes read at once. */
  readonly resyncSpreadMs: number;
  /** Called when a write ends, with its duration and result, for metrics. */
  readonly onWrite?: ((write: WriteEnded) => void) | undefined;
}

/**
 * The contract over a connection, as ZooKeeper's and the simulated one. Stores differ only in their `Port`.
 *
 * It adds what a port does not do: it checks paths and sizes before anything is sent, names the place of a refusal, shows a write to
 * this process's own feeds before the writer learns of its result, and counts calls. It repeats nothing: a lost write is the caller's
 * to judge by its `outcome`.
 */
export class RemoteTree extends TreeCalls {
  readonly capabilities: TreeCapabilities;
  readonly #port: Port;
  readonly #options: RemoteTreeOptions;
  /** Writes of this process without an answer. Feeds keep their events back until the reply, which has more facts than an event. */
  readonly #own = new OwnWrites();
  /** Feeds that were not ended. A feed removes itself. */
  readonly #feeds = new Set<RemoteFeed>();
  /** Set once `close` was called. Later calls are refused with TreeClosed, and a second `close` waits for the first. */
  #closing: Promise<void> | undefined;

  constructor(port: Port, options: RemoteTreeOptions) {
    super(options.clock, options.onWrite);
    this.#port = counted(port, this.counters, this.calls);
    this.#options = options;
    this.capabilities = port.capabilities;
  }

  session(): Session {
    return this.#port.session();
  }

  onSession(listener: (session: Session) => void): () => void {
    return this.#port.onSession(listener);
  }

  clockOffset(): number {
    return this.#port.clockOffset();
  }

  feed(root: string, options: FeedOptions): Feed {
    if (this.#closing !== undefined) throw new TreeClosed(`feed ${root}`);
    checkPath(root, false);
    const feed: RemoteFeed = new RemoteFeed(this.#port, this.#own, root, options, {
      ...this.#options,
      onEnd: () => this.#feeds.delete(feed),
    });
    this.#feeds.add(feed);
    feed.start();
    return feed;
  }

  /** May be called twice. Resolves when the port has ended the session. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Feeds end first, so that none reads over a connection that is being closed. */
  async #close(): Promise<void> {
    for (const feed of [...this.#feeds]) feed.end();
    await this.#port.close();
  }

  /** Feeds report the result of a write before its promise resolves. */
  protected write(
    ops: readonly Op[],
    options: CallOptions | undefined,
    commit: boolean,
  ): Promise<readonly OpResult[]> {
    return new Promise((resolve, reject) => {
      if (this.#closing !== undefined) throw new TreeClosed(describe(ops));
      if (options?.signal?.aborted) throw new CallEnded(describe(ops), "none", options.signal.reason);
      this.#check(ops, commit);
      const write = this.#own.begin(ops);
      this.#port.write(
        ops,
        (error, results) => {
          // First, so that feeds no longer keep back events because of this write.
          this.#own.end(ops, write);
          for (const feed of this.#feeds) feed.ownWrite(ops, results, error);
          if (error === undefined) resolve(results as readonly OpResult[]);
          else reject(commit && ops.length === 1 && isRefusal(error) ? new CommitFailed(0, error) : error);
        },
        options,
      );
    });
  }

  /** Refuses invalid paths and too long writes before they are sent, with an error that names the place. */
  #check(ops: readonly Op[], commit: boolean): void {
    for (let index = 0; index < ops.length; index++) {
      const op = ops[index] as Op;
      try {
        // The path with its digits must be valid. Any digit makes a trailing "/" or "." valid, so one is enough to check.
        checkPath(op.op === "create" && op.sequential ? `${op.path}0` : op.path, false);
        if (op.op === "delete" && op.path === "/")
          throw new BadArguments(op.path, "the root cannot be deleted");
      } catch (error) {
        throw commit && error instanceof TreeError ? new CommitFailed(index, error) : error;
      }
    }
    checkSize(ops, this.capabilities.maxRequestBytes);
  }

  protected read<K extends keyof Reads, M extends Missing>(
    what: K,
    path: string,
    options: CallOptions | undefined,
    missing: M,
  ): Promise<Found<K, M>> {
    return new Promise((resolve, reject) => {
      if (this.#closing !== undefined) throw new TreeClosed(`${what} ${path}`);
      if (options?.signal?.aborted) throw new CallEnded(`${what} ${path}`, "none", options.signal.reason);
      checkPath(path, false);
      const ask = this.#port[what] as (path: string, reply: Reply<Reads[K]>, options?: CallOptions) => void;
      const answer: Reply<Reads[K]> = (error, value) => {
        if (error !== undefined) reject(error);
        else if (value === undefined && missing === "NoNode") reject(new NoNode(path));
        else resolve(value as Found<K, M>);
      };
      ask(path, answer, options);
    });
  }
}

/** Whether the tree refused the operation, as opposed to a call that was interrupted. */
function isRefusal(error: TreeError): boolean {
  switch (error.code) {
    case "tree.no_node":
    case "tree.node_exists":
    case "tree.bad_version":
    case "tree.not_empty":
    case "tree.no_children_for_ephemerals":
    case "tree.bad_arguments":
    case "tree.not_allowed":
      return true;
    default:
      return false;
  }
}

/** The port, with all calls and events counted and all unanswered calls listed, also those of feeds. */
function counted(
  port: Port,
  counters: { calls: number; operations: number; events: number },
  calls: CallsUnderWay,
): Port {
  const read = <T>(what: string, path: string, reply: Reply<T>): Reply<T> => {
    counters.calls++;
    counters.operations++;
    return until(calls.begin(what, path), reply);
  };
  const until =
    <T>(call: CallUnderWay, reply: Reply<T>): Reply<T> =>
    (error, value) => {
      calls.end(call, error);
      // The call is no longer listed when its caller continues, so that a caller that asks sees none of its own.
      reply(error, value);
    };
  return {
    capabilities: port.capabilities,
    session: () => port.session(),
    onSession: (listener) => port.onSession(listener),
    clockOffset: () => port.clockOffset(),
    write: (ops, reply, options) => {
      counters.calls++;
      counters.operations += ops.length;
      port.write(ops, until(calls.beginWrite(ops), reply), options);
    },
    get: (path, reply, options) => port.get(path, read("get", path, reply), options),
    stat: (path, reply, options) => port.stat(path, read("stat", path, reply), options),
    children: (path, reply, options) => port.children(path, read("children", path, reply), options),
    sync: (path, reply, options) => port.sync(path, read("sync", path, reply), options),
    watch: (root, onEvent, onReady) => {
      const tell = (event: Parameters<typeof onEvent>[0]) => {
        counters.events++;
        onEvent(event);
      };
      return port.watch(root, tell, onReady);
    },
    close: () => port.close(),
  };
}
