import { type Account, type DriverContext, messageOf, type Wire } from "@nodeyard/driver";
import { defined } from "@nodeyard/runtime";
import {
  Connection,
  type KubeFiles,
  type KubeObject,
  ObjectWatch,
  type Route,
  resolveAccess,
} from "./client/index.ts";

/** Dependencies of the drivers on their host. Tests pass their own. */
export interface KubeHost {
  /** For the kubeconfig of a provider's context (`resolveAccess`). */
  readonly files: KubeFiles;
  /** Opens the connections to an API server. */
  connect(route: Route): Wire;
}

/** What a cluster needs of the process. The handles of the provider that opens it first are used for all that share it. */
type Handles = Pick<DriverContext, "clock" | "random" | "installation" | "observe" | "log">;

/**
 * One cluster with one credential: a connection, and one watch per collection, shared by all providers that use it. Nothing is read or
 * connected before the first call.
 */
export class Cluster implements Account {
  readonly connection: Connection;
  /** Label selector of all objects of this installation. */
  readonly ours: string;
  readonly #handles: Handles;
  /** Watches in use, by path and selector. */
  readonly #watches = new Map<string, SharedWatch<never>>();

  constructor(context: string | null, { files, connect }: KubeHost, handles: Handles) {
    const { clock, random, observe, installation } = handles;
    const resolve = (signal: AbortSignal) => resolveAccess(context, files, signal);
    this.connection = new Connection({ clock, random, resolve, connect, ...defined({ observe }) });
    this.ours = `nodeyard_installation=${installation}`;
    this.#handles = handles;
  }

  /** No rate limit: API servers answer 429 when there are too many calls, and the connection then waits. */
  limit(): void {}

  close(): Promise<void> {
    // Abandoned launches have not closed their watches.
    for (const watch of this.#watches.values()) watch.end();
    return this.connection.close();
  }

  /** The watch of a collection, to be closed once by each user. `selector` null: of all objects. */
  watch<T extends KubeObject>(path: string, selector: string | null = this.ours): SharedWatch<T> {
    const key = `${path}?${selector}`;
    const { clock, random, log } = this.#handles;
    const onFailure = (error: unknown) =>
      log.info({ path, error: messageOf(error) }, `the watch of ${path} failed; it begins again`);
    const options = { connection: this.connection, clock, random, path, selector, onFailure };
    const unused = () => this.#watches.delete(key);
    const watch = this.#watches.get(key) ?? new SharedWatch<never>(() => new ObjectWatch(options), unused);
    this.#watches.set(key, watch);
    watch.uses++;
    return watch as SharedWatch<KubeObject> as SharedWatch<T>;
  }
}

/** A watch that runs from the first look of any user to the last one's `close`. */
export class SharedWatch<T extends KubeObject> {
  uses = 0;
  readonly #begin: () => ObjectWatch<T>;
  readonly #unused: () => void;
  #watch: ObjectWatch<T> | undefined;

  constructor(begin: () => ObjectWatch<T>, unused: () => void) {
    this.#begin = begin;
    this.#unused = unused;
  }

  /** The watch when it has been listed. Rejects when it is forbidden, and the next look begins another one; or when the signal aborts. */
  async look(signal: AbortSignal): Promise<ObjectWatch<T>> {
    signal.throwIfAborted();
    this.#watch ??= this.#begin();
    try {
      return await this.#watch.synced(signal);
    } catch (error) {
      if (!signal.aborted) this.end();
      throw error;
    }
  }

  close(): void {
    if (--this.uses > 0) return;
    this.#unused();
    this.end();
  }

  end(): void {
    this.#watch?.close();
    this.#watch = undefined;
  }
}
