import {
  type Account,
  type ApiCall,
  type Clock,
  type Random,
  type Share,
  SharedAccounts,
  type Wire,
  wasRefused,
} from "@nodeyard/driver";
import { defined } from "@nodeyard/runtime";
import {
  Connection,
  type KubeFiles,
  type KubeObject,
  ObjectWatch,
  type Pod,
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
interface Handles {
  readonly clock: Clock;
  readonly random: Random;
  /** UUID of the installation, for the label selector. */
  readonly installation: string;
  readonly observe?: (call: ApiCall) => void;
  /** Called when a watch failed. The watch retries by itself. */
  readonly onFailure: (path: string, error: unknown) => void;
}

/** A watch that shows a pod; `release` is to be called once. Later calls of `get` on a released watch may show an old state. */
export interface Seen {
  readonly watch: ObjectWatch<Pod>;
  release(): void;
}

/** One cluster with one credential: a connection, and one watch per collection, shared by all providers that use it. */
export class Cluster implements Account {
  readonly connection: Connection;
  readonly #handles: Handles;
  /** Open watches by path and selector. A watch is removed with its last user. */
  readonly #watches = new Map<string, ObjectWatch<KubeObject>>();
  /** The credential may not list pods of all namespaces. Learned from a 403 and kept, so that each launch does not ask again. */
  #isNarrow = false;

  constructor(connection: Connection, handles: Handles) {
    this.connection = connection;
    this.#handles = handles;
  }

  /** No rate limit: API servers answer 429 when there are too many calls, and the connection then waits. */
  limit(): void {}

  close(): Promise<void> {
    // Abandoned launches have not released their watches.
    for (const watch of this.#watches.values()) watch.close();
    return this.connection.close();
  }

  /** Label selector of all objects of this installation. */
  get ours(): string {
    return `nodeyard_installation=${this.#handles.installation}`;
  }

  /** The watch of a collection. The caller passes it to `release` when done. */
  watch<T extends KubeObject>(path: string, selector?: string): ObjectWatch<T> {
    const key = `${path}?${selector ?? ""}`;
    let watch = this.#watches.get(key);
    if (watch === undefined) {
      const { clock, random, onFailure } = this.#handles;
      watch = new ObjectWatch({
        connection: this.connection,
        clock,
        random,
        path,
        ...defined({ selector }),
        onFailure: (error) => onFailure(path, error),
      });
      this.#watches.set(key, watch);
    }
    return watch.use() as unknown as ObjectWatch<T>;
  }

  /** Gives up one use of a watch. The last one closes it, and the next `watch` of the collection lists again. */
  release(watch: ObjectWatch<never>): void {
    if (!watch.release()) return;
    for (const [key, known] of this.#watches) if (known === (watch as unknown)) this.#watches.delete(key);
  }

  /**
   * Pods of this installation in a namespace: from the watch of all namespaces if the credential has that right, otherwise from one of this
   * namespace.
   */
  async podsIn(namespace: string, signal: AbortSignal): Promise<Seen> {
    const all = await this.podsInAll(signal);
    return all ?? this.podsInOne(namespace, signal);
  }

  /** The same from a watch of that namespace. */
  podsInOne(namespace: string, signal: AbortSignal): Promise<Seen> {
    return this.#seen(`/api/v1/namespaces/${namespace}/pods`, signal);
  }

  /** The watch of all namespaces; undefined when the credential has no right to it. */
  async podsInAll(signal: AbortSignal): Promise<Seen | undefined> {
    if (this.#isNarrow) return undefined;
    try {
      return await this.#seen("/api/v1/pods", signal);
    } catch (error) {
      if (!wasRefused(error, 403)) throw error;
      this.#isNarrow = true;
      return undefined;
    }
  }

  /**
   * A watch of pods of this installation that has been listed. Rejects, with nothing to release, when it is forbidden or the
   * signal aborts.
   */
  async #seen(path: string, signal: AbortSignal): Promise<Seen> {
    const watch = this.watch<Pod>(path, this.ours);
    const release = () => this.release(watch as never);
    try {
      await watch.synced(signal);
      return { watch, release };
    } catch (error) {
      release();
      throw error;
    }
  }
}

/** Clusters by context. Providers with the same context and installation share a cluster. */
export class Clusters {
  readonly #host: KubeHost;
  readonly #shared = new SharedAccounts<Cluster>();

  constructor(host: KubeHost) {
    this.#host = host;
  }

  /** The cluster of a context. Rejects never: nothing is read or connected before the first call. */
  share(context: string | null, handles: Handles): Share<Cluster> {
    const { files, connect } = this.#host;
    const { clock, random, observe } = handles;
    // KUBECONFIG is part of the key, because the same context may mean another cluster in another file. The installation is,
    // because watches select its objects.
    const key = JSON.stringify([context, files.env.KUBECONFIG ?? null, handles.installation]);
    return this.#shared.share(clock, key, 0, () => {
      const resolve = (signal: AbortSignal) => resolveAccess(context, files, signal);
      const connection = new Connection({ clock, random, resolve, connect, ...(observe ? { observe } : {}) });
      return new Cluster(connection, handles);
    });
  }
}
