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

/** A ZooKeeper client. Every operation is pipelined: replies come in the order of the calls. */
export class ZooKeeper implements AsyncDisposable {
  readonly #session: Session;
  /** The time and the chance that the client lives by; recipes on it use them too. */
  readonly clock: Api.Clock;
  readonly random: Api.Random;

  /**
   * `connectionString` is `host:port,host:port/chroot`. Connects nothing yet: operations called before `connect` wait.
   * Throws BadArguments for a string or an option that makes no sense.
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

  /** Zxid of the reply that came last; within a synchronous `onReply` that of its own reply. -1n before the first. */
  get lastZxid(): bigint {
    return this.#session.lastZxid;
  }

  /** Operations that wait for the connection or for room on it. */
  get queued(): number {
    return this.#session.queue.queued;
  }

  /** Requests on the wire without a reply. */
  get inFlight(): number {
    return this.#session.queue.inFlight;
  }

  /** Starts connecting, once; resolves when connected. A deadline or signal that ends the wait stops nothing. */
  async connect(options: Pick<Api.OpOptions, "deadlineMs" | "signal"> = {}): Promise<void> {
    this.#session.start();
    await this.#session.connected(options);
  }

  create(path: string, data?: Uint8Array, options?: Api.CreateOptions): Promise<Api.Created> {
    return this.#call(() => createRequest(path, data, options), same, options);
  }

  get(path: string, options?: Api.ReadOptions): Promise<Api.Data> {
    return this.#read({ type: OpCode.getData, path, watch: false }, same, options);
  }

  set(path: string, data: Uint8Array, options?: Api.VersionOptions): Promise<Stat> {
    return this.#at(path, { type: OpCode.setData, path, data, version: versionOf(options) }, statOf, options);
  }

  delete(path: string, options?: Api.VersionOptions): Promise<void> {
    return this.#at(path, { type: OpCode.delete, path, version: versionOf(options) }, nothing, options);
  }

  /** Undefined when there is no such znode. */
  exists(path: string, options?: Api.ReadOptions): Promise<Stat | undefined> {
    const found = this.#read({ type: OpCode.exists, path, watch: false }, statOf, options);
    return found.catch((error: unknown) => {
      if (error instanceof NoNode) return undefined;
      throw error;
    });
  }

  children(path: string, options?: Api.ReadOptions): Promise<Api.Children> {
    return this.#read({ type: OpCode.getChildren2, path, watch: false }, same, options);
  }

  getAcl(path: string, options?: Api.OpOptions): Promise<Api.AccessList> {
    return this.#at(path, { type: OpCode.getAcl, path }, same, options);
  }

  /** `version` is compared with the znode's aversion. */
  setAcl(path: string, acl: readonly Acl[], options?: Api.VersionOptions): Promise<Stat> {
    return this.#at(path, { type: OpCode.setAcl, path, acl, version: versionOf(options) }, statOf, options);
  }

  /** Resolves when this server has caught up with its leader. The leader itself may be behind what its followers have answered for. */
  sync(path: string, options?: Api.OpOptions): Promise<void> {
    return this.#at(path, { type: OpCode.sync, path }, nothing, options);
  }

  /** All or nothing; rejects with MultiFailed. */
  multi(ops: readonly Api.MultiOp[], options?: Api.OpOptions): Promise<Api.MultiOpResult[]> {
    return this.#call(
      () => ({ type: OpCode.multi, ops: ops.map(multiOpRequest) }),
      (response) => multiResults(ops, response.results, this.lastZxid),
      options,
    );
  }

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

  /** Whom the server takes this connection for (ZooKeeper 3.7 and newer, otherwise Unimplemented). */
  whoAmI(options?: Api.OpOptions): Promise<readonly ClientInfo[]> {
    return this.#call(
      () => ({ type: OpCode.whoAmI }),
      (response) => response.clientInfo,
      options,
    );
  }

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

  /** Every watch event, watched for or not, before the listeners of its path. Returns the unsubscriber. */
  onWatchEvent(listener: Api.WatchListener): () => void {
    return this.#session.watches.onEvent(listener);
  }

  /** Adds credentials to this and every later connection. */
  addAuth(info: Api.AuthInfo): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#session.addAuth(info, (error) => (error === undefined ? resolve() : reject(error)));
    });
  }

  /** Creates what is missing of a path. */
  ensurePath(path: string, options?: Api.OpOptions & { readonly acl?: readonly Acl[] }): Promise<void> {
    return ensurePath(this, path, options);
  }

  /** Deletes a znode and all below it; what others delete meanwhile is no error. */
  deleteRecursive(path: string, options?: Api.OpOptions): Promise<void> {
    return deleteRecursive(this, path, options);
  }

  /** The raw door: any request, with a synchronous reply. Throws only for arguments that cannot be encoded. */
  submit<R extends Request>(request: R, onReply: Api.OnReply<R>, options?: Api.OpOptions): void {
    this.#session.queue.submit(request, onReply as never, options);
  }

  /** Resolves at once while less than half of `maxQueued` operations wait, otherwise when that is so again. */
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

  /** The present status, then every change, until the client is closed. */
  status(): AsyncIterableIterator<Api.Status> {
    return this.#session.board.read();
  }

  /** Called synchronously with every change. Returns the unsubscriber. */
  onStatus(listener: (status: Api.Status) => void): () => void {
    return this.#session.board.listen(listener);
  }

  /** Takes effect with the next connection; the chroot must stay the same. */
  setServers(connectionString: string): void {
    const target = parseConnectionString(connectionString);
    if (target.chroot !== this.#session.chroot) {
      const [now, wanted] = [this.#session.chroot || "none", target.chroot || "none"];
      throw new BadArguments(`the chroot is ${now} and cannot become ${wanted}: make a new client for it`);
    }
    this.#session.setHosts(target.hosts);
  }

  /** Resolves when every operation submitted so far has ended, well or not. */
  drain(): Promise<void> {
    return new Promise((resolve) => {
      this.#session.queue.whenIdle(resolve);
    });
  }

  /** Ends the session after what is in flight; never rejects, and takes no longer than a session timeout. */
  close(): Promise<void> {
    return this.#session.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

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

  #call<R extends Request, T>(
    request: () => R,
    map: (response: ResponseTo<R["type"]>) => T | ZooKeeperError,
    options?: Api.OpOptions,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#send(request(), map, resolve, reject, options);
    });
  }

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

/** Makes a client and connects it; when that fails, nothing of it is left. */
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
