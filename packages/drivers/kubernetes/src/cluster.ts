import { type DriverContext, messageOf } from "@nodeyard/driver";
import {
  Connection,
  type ConnectionOptions,
  type KubeFiles,
  ObjectWatch,
  resolveAccess,
} from "./client/index.ts";

/** Dependencies of the drivers on their host. Tests pass their own. */
export interface KubeHost extends Pick<ConnectionOptions, "connect"> {
  /** For the kubeconfig of a provider's context (`resolveAccess`). */
  readonly files: KubeFiles;
}

/**
 * One cluster with one credential: its calls, and one watch per collection, shared by all providers that use it, with the handles of the
 * provider that opened it first. Nothing is read or connected before the first call.
 */
export class Cluster extends Connection {
  /** Label selector of all objects of this installation. */
  readonly ours: string;
  readonly #context: DriverContext;
  /** Watches in use, by path and selector. */
  readonly #watches = new Map<string, ObjectWatch>();

  constructor(of: string | null, { files, connect }: KubeHost, context: DriverContext) {
    super({ ...context, connect, resolve: (signal) => resolveAccess(of, files, signal) });
    this.ours = `nodeyard_installation=${context.installation}`;
    this.#context = context;
  }

  override close(): Promise<void> {
    // Abandoned launches have not closed their watches.
    for (const watch of this.#watches.values()) watch.end();
    return super.close();
  }

  /** The watch of a collection, to be closed once by each user. `selector` null: of all objects. */
  watch(path: string, selector: string | null = this.ours): ObjectWatch {
    const key = `${path}?${selector}`;
    const { clock, random, log } = this.#context;
    const options = {
      ...{ connection: this, clock, random, path },
      ...(selector !== null && { query: { labelSelector: selector } }),
      onFailure: (error: unknown) =>
        log.info({ path, error: messageOf(error) }, `the watch of ${path} failed`),
      onUnused: () => this.#watches.delete(key),
    };
    const watch = this.#watches.get(key) ?? new ObjectWatch(options);
    this.#watches.set(key, watch);
    watch.uses++;
    return watch;
  }
}
