import {
  Aborted,
  BadArguments,
  DeadlineExceeded,
  NoNode,
  NoWatcher,
  type ZooKeeperError,
} from "../errors.ts";
import { checkPath } from "../paths.ts";
import type { OneShotKind, WatchRegistry } from "../session/watch-registry.ts";
import type { OnReply, OpOptions, Watch, WatchListener, WatchMode } from "../types.ts";
import type { ReadRequest, Request } from "../wire/messages.ts";
import { AddWatchMode, OpCode, WatcherType } from "../wire/op-code.ts";

/** The part of the client that watches need. */
interface Submitter {
  submit<R extends Request>(request: R, onReply: OnReply<R>, options?: OpOptions): void;
}

/**
 * Prepares a read that sets a one-shot watch. When this client already has a persistent watch on the path, the request
 * sets no watch on the server: servers before 3.9 would replace the persistent watch by a one-shot watch (ZOOKEEPER-4466).
 */
export function withWatch<R extends ReadRequest>(
  watches: WatchRegistry,
  request: R,
  listener: WatchListener,
  onReply: OnReply<R>,
): { readonly request: R; readonly onReply: OnReply<R> } {
  const { path, type } = request;
  const covered = watches.modeAt(path) !== undefined;
  const kind: OneShotKind = type === OpCode.exists || type === OpCode.getData ? "data" : "child";
  return {
    request: { ...request, watch: !covered },
    onReply: (error, response) => {
      if (error === undefined) watches.addOneShot(kind, path, listener);
      // Only an exists request sets a watch on a znode that does not exist.
      else if (type === OpCode.exists && error instanceof NoNode) watches.addOneShot("exist", path, listener);
      onReply(error, response);
    },
  };
}

/**
 * Adds a persistent watch. The listener is registered before the request is sent, so an event that arrives before the reply is not
 * missed. Rejects with BadArguments when the path has a watch of the other mode; after any error the listener is not called any more.
 */
export function addWatch(
  client: Submitter,
  watches: WatchRegistry,
  path: string,
  mode: WatchMode,
  listener: WatchListener,
  options: OpOptions | undefined,
): Promise<Watch> {
  return new Promise((resolve, reject) => {
    checkPath(path);
    const present = watches.modeAt(path);
    if (present !== undefined && present !== mode) {
      throw new BadArguments(
        `has a ${present} watch already, and servers keep one mode per path and client`,
        {
          op: "addWatch",
          path,
        },
      );
    }
    // A function of its own for each call, because the registry holds a set: the same listener may be given twice.
    const own: WatchListener = (event) => listener(event);
    watches.addPersistent(path, mode, own);
    const code = mode === "persistent" ? AddWatchMode.persistent : AddWatchMode.persistentRecursive;
    client.submit(
      { type: OpCode.addWatch, path, mode: code },
      (error) => {
        if (error === undefined) {
          resolve(new PersistentWatch(client, watches, path, mode, own));
          return;
        }
        watches.removePersistent(path, own);
        if (watches.modeAt(path) === undefined) {
          // One-shot watches may have relied on the persistent watch (`withWatch`), which the server may not have.
          watches.loseOneShots(path);
          // The caller gave up waiting, so the server may still set the watch and would send events without a listener: remove it.
          if (error instanceof DeadlineExceeded || error instanceof Aborted)
            void forget(client, path, undefined).catch(() => undefined);
        }
        reject(error);
      },
      options,
    );
  });
}

/** Removes all watches of this client on a path, on the server also those that the registry does not know. */
export async function removeWatches(
  client: Submitter,
  watches: WatchRegistry,
  path: string,
  options: OpOptions | undefined,
): Promise<void> {
  checkPath(path);
  watches.removeAll(path);
  await forget(client, path, options);
}

/** Removes the watches of a path at the server. That there are none is no error. */
function forget(client: Submitter, path: string, options: OpOptions | undefined): Promise<void> {
  const request: Request = { type: OpCode.removeWatches, path, watcherType: WatcherType.any };
  return new Promise((resolve, reject) => {
    client.submit(
      request,
      (error: ZooKeeperError | undefined) => {
        if (error === undefined || error instanceof NoWatcher) resolve();
        else reject(error);
      },
      options,
    );
  });
}

/** One listener of a persistent watch. The watch at the server is removed with the last listener on its path. */
class PersistentWatch implements Watch {
  readonly path: string;
  readonly mode: WatchMode;
  readonly #client: Submitter;
  readonly #watches: WatchRegistry;
  readonly #listener: WatchListener;

  constructor(
    client: Submitter,
    watches: WatchRegistry,
    path: string,
    mode: WatchMode,
    listener: WatchListener,
  ) {
    this.#client = client;
    this.#watches = watches;
    this.path = path;
    this.mode = mode;
    this.#listener = listener;
  }

  /** May be called twice. The listener is not called after this call, whatever becomes of the request. */
  async remove(options?: OpOptions): Promise<void> {
    if (!this.#watches.removePersistent(this.path, this.#listener)) return;
    await forget(this.#client, this.path, options);
  }

  /** Ignores errors: when the client is closed or disconnected there is no connection on which to remove the watch. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.remove().catch(() => undefined);
  }
}
