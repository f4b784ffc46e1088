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
  readonly #watches = new Map<string, ObjectWatch<never>>();

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
  watch<T extends KubeObject>(path: string, selector: string | null = this.ours): ObjectWatch<T> {
    const key = `${path}?${selector}`;
    const { clock, random, log } = this.#handles;
    const options = {
      ...{ connection: this.connection, clock, random, path },
      ...(selector !== null && { query: { labelSelector: selector } }),
      onFailure: (error: unknown) =>
        log.info({ path, error: messageOf(error) }, `the watch of ${path} failed`),
      onUnused: () => this.#watches.delete(key),
    };
    const watch = this.#watches.get(key) ?? new ObjectWatch<never>(options);
    this.#watches.set(key, watch);
    watch.uses++;
    return watch as ObjectWatch<KubeObject> as ObjectWatch<T>;
  }
}
