import { type DriverContext, messageOf } from "@nodeyard/driver";
import {
  Connection,
  type ConnectionOptions,
  type KubeFiles,
  ObjectWatch,
  resolveAccess,
} from "./client/index.ts";
import type { KubeProviderConfig } from "./config.ts";
import type { Kind } from "./config-table.ts";
import type { JobAccess } from "./nodes/access.ts";

/** Dependencies of the drivers on their host. Tests pass their own. */
export interface KubeHost extends Pick<ConnectionOptions, "connect"> {
  /** For the kubeconfig of a provider's context (`resolveAccess`). */
  readonly files: KubeFiles;
}

/** A cluster with one credential: its calls, and a watch per collection, for all providers that use it. Nothing is read before the first call. */
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

/** Dependencies of a provider's nodes. Objects with another `installation` are never touched. */
export interface Site extends DriverContext {
  readonly kind: Kind;
  readonly config: KubeProviderConfig;
  readonly cluster: Cluster;
  readonly access: JobAccess;
  readonly remark: NonNullable<DriverContext["remark"]>;
  /** Gives up the cluster. */
  release(): Promise<void>;
}
