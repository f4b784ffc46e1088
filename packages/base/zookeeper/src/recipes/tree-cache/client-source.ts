import { multiOpRequest } from "../../client/requests.ts";
import type { ZooKeeper } from "../../client/zookeeper.ts";
import { NoNode } from "../../errors.ts";
import type { OnReply, OpOptions } from "../../types.ts";
import type { ReadRequest, Request, ResponseTo, Stat } from "../../wire/messages.ts";
import { OpCode } from "../../wire/op-code.ts";
import type { Source } from "./types.ts";
import { WatchKeeper } from "./watch-keeper.ts";

/**
 * Adapts a client to the `Source` that caches read from. One source serves any number of caches. Replies and events come synchronously
 * and in the order of the connection, which caches rely on.
 */
export class ClientSource implements Source {
  readonly #client: ZooKeeper;
  readonly #readsOnly: boolean;
  readonly #watches: WatchKeeper;
  readonly #unsubscribe: () => void;

  constructor(client: ZooKeeper, readsOnly = false) {
    this.#client = client;
    this.#readsOnly = readsOnly;
    this.#watches = new WatchKeeper(client);
    this.#unsubscribe = client.onStatus(({ state }) => {
      if (state === "connected") this.#watches.connected();
    });
  }

  session(): ReturnType<Source["session"]> {
    return this.#client.session;
  }

  onSession(listener: Parameters<Source["onSession"]>[0]): () => void {
    return this.#client.onStatus(listener);
  }

  /** None of the three reads sets a watch: the one on the root covers all. */
  get(path: string, reply: Parameters<Source["get"]>[1], options?: OpOptions): void {
    this.#read({ type: OpCode.getData, path, watch: false }, (found) => found, reply, options);
  }

  stat(path: string, reply: Parameters<Source["stat"]>[1], options?: OpOptions): void {
    this.#read({ type: OpCode.exists, path, watch: false }, statOf, reply, options);
  }

  children(path: string, reply: Parameters<Source["children"]>[1], options?: OpOptions): void {
    this.#read({ type: OpCode.getChildren, path, watch: false }, childrenOf, reply, options);
  }

  /**
   * Commits a single check instead of using ZooKeeper's `sync`. A leader answers `sync` from what it has applied itself, which can be
   * behind what a follower has applied and acknowledged. A commit is ordered among all writes, whichever server is asked. Whether the
   * checked znode exists does not matter. A client that must not write anything, not even that to the servers' logs, uses `sync` and bears it.
   */
  sync(path: string, reply: Parameters<Source["sync"]>[1], options?: OpOptions): void {
    const ops = [multiOpRequest({ op: "check", path })];
    this.#client.submit(
      this.#readsOnly ? { type: OpCode.sync, path } : { type: OpCode.multi, ops },
      (error) => (error === undefined ? reply(undefined, true) : reply(error, undefined)),
      options,
    );
  }

  /** One watch on the root of each cache, recursive. */
  watch(...args: Parameters<Source["watch"]>): ReturnType<Source["watch"]> {
    return this.#watches.add(...args);
  }

  /** No watch is set or set again after this call. The client stays open. */
  close(): void {
    this.#unsubscribe();
    this.#watches.close();
  }

  /** A missing znode is a valid answer (no error, no value); every other failure is an error. */
  #read<R extends ReadRequest & Request, T>(
    request: R,
    map: (response: ResponseTo<R["type"]>) => T,
    reply: (error: Error | undefined, value: T | undefined) => void,
    options: OpOptions | undefined,
  ): void {
    const onReply: OnReply<R> = (error, response) => {
      if (error === undefined) reply(undefined, map(response as ResponseTo<R["type"]>));
      else reply(error instanceof NoNode ? undefined : error, undefined);
    };
    this.#client.submit(request, onReply, options);
  }
}

function statOf(response: { readonly stat: Stat }): Stat {
  return response.stat;
}

function childrenOf(response: { readonly children: readonly string[] }): readonly string[] {
  return response.children;
}
