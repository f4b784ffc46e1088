import { parseConnectionString } from "../connection-string.ts";
import { BadArguments, NoNode, type ZooKeeperError } from "../errors.ts";
import { checkPath } from "../paths.ts";
import { Session } from "../session/session.ts";
import { settingsOf } from "../session/settings.ts";
import type * as Api from "../types.ts";
import type { Acl, ClientInfo, ReadRequest, Request, ResponseTo, Stat } from "../wire/messages.ts";
import { OpCode } from "../wire/op-code.ts";
import { deleteRecursive, ensurePath } from "./helpers.ts";
import { multiReadResults, multiResults } from "./multi.ts";
import { createRequest, multiOpRequest, versionOf } from "./requests.ts";
import { addWatch, removeWatches, withWatch } from "./watching.ts";

/**
 * A ZooKeeper client. Every operation is pipelined: replies come in the order of the calls.
 *
 * Operations reject with the errors of `errors.ts`, each with a stable code and an `outcome`, which is "unknown" for a write that may
 * have been applied. Nothing is repeated by the client: only the caller knows whether that is safe. A path or an argument that no
 * server takes is refused with BadArguments before anything is sent.
 */
export class ZooKeeper implements AsyncDisposable {
  readonly #session: Session;
  /** Clock and randomness of the client. Recipes that use this client use them too, so that a simulation controls both. */
  readonly clock: Api.Clock;
  readonly random: Api.Random;

  /**
   * `connectionString` is `host:port,host:port/chroot`. The constructor opens no connection; operations called before
   * `connect` wait in the queue. Throws BadArguments for a malformed string or an option out of range.
   */
  constructor(connectionString: string, options: Api.ZooKeeperOptions = {}) {
    const settings = settingsOf(options);
    this.random = settings.random;
    this.clock = settings.clock;
    this.#session = new Session(parseConnectionString(connectionString), settings);
  }

  get session(): Api.SessionInfo {
    return this.#session;
  }

  get counters(): Api.Counters {
    return this.#session.sums;
  }

  /** Zxid of the most recent reply; inside a synchronous `onReply`, the zxid of that reply. -1n before the first reply. */
  get lastZxid(): bigint {
    return this.#session.lastZxid;
  }

  /** Number of operations that wait in the client, for a connection or for a free place in flight. */
  get queued(): number {
    return this.#session.queue.queued;
  }

  /** Number of requests that were sent and have no reply yet. */
  get inFlight(): number {
    return this.#session.queue.inFlight;
  }

  /**
   * Starts to connect, once, and resolves when connected. When the deadline passes or the signal fires, only the wait ends: the client
   * keeps trying.
   */
  async connect(options: Pick<Api.OpOptions, "deadlineMs" | "signal"> = {}): Promise<void> {
    this.#session.start();
    await this.#session.connected(options);
  }

  /** The data is empty by default and the access list open. A sequential create resolves with the path that the server chose. */
  create(path: string, data?: Uint8Array, options?: Api.CreateOptions): Promise<Api.Created> {
    return this.#call(() => createRequest(path, data, options), same, options);
  }

  /** Rejects with NoNode when the znode does not exist; then no watch is set, unlike with `exists`. */
  get(path: string, options?: Api.ReadOptions): Promise<Api.Data> {
    return this.#read({ type: OpCode.getData, path, watch: false }, same, options);
  }

  /** Without a version the data is set whatever the version is. */
  set(path: string, data: Uint8Array, options?: Api.VersionOptions): Promise<Stat> {
    return this.#at(path, { type: OpCode.setData, path, data, version: versionOf(options) }, statOf, options);
  }

  /** Rejects with NotEmpty when the znode has children. */
  delete(path: string, options?: Api.VersionOptions): Promise<void> {
    return this.#at(path, { type: OpCode.delete, path, version: versionOf(options) }, nothing, options);
  }

  /** The znode's Stat; undefined when the znode does not exist. */
  exists(path: string, options?: Api.ReadOptions): Promise<Stat | undefined> {
    const found = this.#read({ type: OpCode.exists, path, watch: false }, statOf, options);
    return found.catch((error: unknown) => {
      if (error instanceof NoNode) return undefined;
      throw error;
    });
  }

  /** Names, in no order, and the Stat of the parent. */
  children(path: string, options?: Api.ReadOptions): Promise<Api.Children> {
    return this.#read({ type: OpCode.getChildren2, path, watch: false }, same, options);
  }

  getAcl(path: string, options?: Api.OpOptions): Promise<Api.AccessList> {
    return this.#at(path, { type: OpCode.getAcl, path }, same, options);
  }

  /** Replaces the access list. `version` is compared with the znode's aversion, not with its version. */
  setAcl(path: string, acl: readonly Acl[], options?: Api.VersionOptions): Promise<Stat> {
    return this.#at(path, { type: OpCode.setAcl, path, acl, version: versionOf(options) }, statOf, options);
  }

  /**
   * Resolves when the connected server has applied what its leader had committed. It is no full barrier: a leader that lost its
   * quorum unnoticed can itself be behind writes that a newer leader has acknowledged.
   */
  sync(path: string, options?: Api.OpOptions): Promise<void> {
    return this.#at(path, { type: OpCode.sync, path }, nothing, options);
  }

  /** Applies all operations in one transaction or none of them. Rejects with MultiFailed, which names the operation that failed. */
  multi(ops: readonly Api.MultiOp[], options?: Api.OpOptions): Promise<Api.MultiOpResult[]> {
    return this.#call(
      () => ({ type: OpCode.multi, ops: ops.map(multiOpRequest) }),
      (response) => multiResults(ops, response.results, this.lastZxid),
      options,
    );
  }

  /** Reads several znodes with one request. A read that fails is an error in its own place. From ZooKeeper 3.6 on. */
  multiRead(ops: readonly Api.MultiReadOp[], options?: Api.OpOptions): Promise<Api.MultiReadResult[]> {
    const request = () => {
      const reads = ops.map(({ op, path }): ReadRequest => {
        checkPath(path);
        return { type: op === "get" ? OpCode.getData : OpCode.getChildren, path, watch: false };
      });
      return { type: OpCode.multiRead, ops: reads };
    };
    return this.#call(request, (response) => multiReadResults(ops, response.results), options);
  }

  /** The identities that the server assigned to this connection. ZooKeeper 3.7 and newer; older servers answer Unimplemented. */
  whoAmI(options?: Api.OpOptions): Promise<readonly ClientInfo[]> {
    return this.#call(
      () => ({ type: OpCode.whoAmI }),
      (response) => response.clientInfo,
      options,
    );
  }

  /** Sets a watch that stays until it is removed, also over new connections and sessions. From ZooKeeper 3.6 on. */
  addWatch(
    path: string,
    mode: Api.WatchMode,
    listener: Api.WatchListener,
    options?: Api.OpOptions,
  ): Promise<Api.Watch> {
    return addWatch(this, this.#session.watches, path, mode, listener, options);
  }

  /** Removes all watches of this client on a path, here and at the server. */
  removeWatches(path: string, options?: Api.OpOptions): Promise<void> {
    return removeWatches(this, this.#session.watches, path, options);
  }

  /** Calls `listener` with every watch event of this client, before the listeners of the path. Returns a function that unsubscribes. */
  onWatchEvent(listener: Api.WatchListener): () => void {
    return this.#session.watches.onEvent(listener);
  }

  /** Sends credentials on this connection, and on every later one before any operation. */
  addAuth(info: Api.AuthInfo): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#session.addAuth(info, (error) => (error === undefined ? resolve() : reject(error)));
    });
  }

  /** Creates the missing znodes of a path, from the top down. */
  ensurePath(path: string, options?: Api.OpOptions & { readonly acl?: readonly Acl[] }): Promise<void> {
    return ensurePath(this, path, options);
  }

  /** Deletes a znode and everything below it. Znodes that other clients delete at the same time cause no error. */
  deleteRecursive(path: string, options?: Api.OpOptions): Promise<void> {
    return deleteRecursive(this, path, options);
  }

  /**
   * Sends any request of the protocol; `onReply` is called synchronously with the reply. Throws only when the request cannot be encoded.
   */
  submit<R extends Request>(request: R, onReply: Api.OnReply<R>, options?: Api.OpOptions): void {
    this.#session.queue.submit(request, onReply as never, options);
  }

  /** Resolves while less than half of `maxQueued` operations wait. Producers await it, so that they do not run into QueueFull. */
  writable(options: Pick<Api.OpOptions, "signal"> = {}): Promise<void> {
    const { signal } = options;
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const onAbort = () => reject(signal?.reason);
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#session.queue.whenWritable(() => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
    });
  }

  /** Yields the present status, then every change, until the client is closed. */
  status(): AsyncIterableIterator<Api.Status> {
    return this.#session.board.read();
  }

  /** Calls `listener` synchronously with every change. Returns a function that unsubscribes. */
  onStatus(listener: (status: Api.Status) => void): () => void {
    return this.#session.board.listen(listener);
  }

  /** Replaces the list of servers. The next connection uses it. Throws BadArguments when the chroot differs. */
  setServers(connectionString: string): void {
    const target = parseConnectionString(connectionString);
    if (target.chroot !== this.#session.chroot) {
      const [now, wanted] = [this.#session.chroot || "none", target.chroot || "none"];
      throw new BadArguments(`the chroot is ${now} and cannot become ${wanted}: make a new client for it`);
    }
    this.#session.setHosts(target.hosts);
  }

  /** Resolves when every operation submitted before the call has succeeded or failed. */
  drain(): Promise<void> {
    return new Promise((resolve) => {
      this.#session.queue.whenIdle(resolve);
    });
  }

  /** Lets requests in flight finish, then ends the session. Never rejects, and takes no longer than the session timeout. */
  close(): Promise<void> {
    return this.#session.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** A request about one path. */
  #at<R extends Request, T>(
    path: string,
    request: R,
    map: (response: ResponseTo<R["type"]>) => T | ZooKeeperError,
    options?: Api.OpOptions,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      checkPath(path);
      this.#send(request, map, resolve, reject, options);
    });
  }

  /** `request` makes the request within the promise, so that bad arguments reject and do not throw. */
  #call<R extends Request, T>(
    request: () => R,
    map: (response: ResponseTo<R["type"]>) => T | ZooKeeperError,
    options?: Api.OpOptions,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#send(request(), map, resolve, reject, options);
    });
  }

  /** A read, with a one-shot watch if the options have one. */
  #read<R extends ReadRequest, T>(
    request: R,
    map: (response: ResponseTo<R["type"]>) => T,
    options?: Api.ReadOptions,
  ): Promise<T> {
    if (options?.watch === undefined) return this.#at(request.path, request, map, options);
    return new Promise((resolve, reject) => {
      checkPath(request.path);
      const settle: Api.OnReply<R> = (error, response) => {
        if (error === undefined) resolve(map(response as ResponseTo<R["type"]>));
        else reject(error);
      };
      const watched = withWatch(this.#session.watches, request, options.watch as Api.WatchListener, settle);
      this.submit(watched.request, watched.onReply, options);
    });
  }

  /** `map` may return an error, for replies that contain refusals, as that of a multi. */
  #send<R extends Request, T>(
    request: R,
    map: (response: ResponseTo<R["type"]>) => T | ZooKeeperError,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
    options: Api.OpOptions | undefined,
  ): void {
    this.submit(
      request,
      (error, response) => {
        if (error !== undefined) {
          reject(error);
          return;
        }
        const value = map(response as ResponseTo<R["type"]>);
        if (value instanceof Error) reject(value);
        else resolve(value);
      },
      options,
    );
  }
}

function same<T>(response: T): T {
  return response;
}

function statOf(response: { readonly stat: Stat }): Stat {
  return response.stat;
}

function nothing(): void {}

/** Makes a client and connects it. When connecting fails, the client is closed before the promise rejects. */
export async function connect(
  connectionString: string,
  options: Api.ZooKeeperOptions & Pick<Api.OpOptions, "deadlineMs" | "signal"> = {},
): Promise<ZooKeeper> {
  const client = new ZooKeeper(connectionString, options);
  try {
    await client.connect(options);
  } catch (error) {
    await client.close();
    throw error;
  }
  return client;
}
