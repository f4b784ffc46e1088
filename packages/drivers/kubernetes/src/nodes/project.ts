import {
  DriverError,
  type LabelConfig,
  messageOf,
  type Resources,
  SharedValue,
  unlessRefused,
  wasRefused,
} from "@nodeyard/driver";
import type { LimitRange, ResourceQuota } from "kubernetes-types/core/v1.d.ts";
import { amountsOf, quotaAmounts } from "../amounts.ts";
import { listAll, type ObjectWatch, type Pod } from "../client/index.ts";
import type { KubeLabelOwn } from "../config.ts";
import type { Site } from "../site.ts";
import { ONCE } from "./access.ts";

/** An existing project in which nodes are pods: their watch, the rights there, quotas and defaults. */
export class Project {
  readonly name: string;
  readonly path: string;
  /** The pods of this installation. */
  readonly pods: ObjectWatch<Pod>;
  /** Why it could not be read since the provider opened: that is its pool's fault, and the others serve. Null: it could. */
  closed: Error | null = null;
  /** Why jobs get the launcher's own credential; null: they get one of their own. */
  refusal: string | null = null;
  readonly #site: Site;
  /** Amounts that a LimitRange adds to a container without amounts of its own. */
  readonly #defaults: SharedValue<Resources>;

  constructor(site: Site, name: string) {
    this.#site = site;
    this.name = name;
    this.path = `/api/v1/namespaces/${name}`;
    this.pods = site.cluster.watch(`${this.path}/pods`);
    const load = async (signal: AbortSignal) => {
      const ranges = await this.#optional<LimitRange>("limitranges", signal);
      const limits = ranges
        .flatMap(({ spec }) => spec?.limits ?? [])
        .filter(({ type }) => type === "Container");
      const added = limits.map((one) => amountsOf({ ...one.default, ...one.defaultRequest }));
      return Object.assign({}, ...added) as Resources;
    };
    this.#defaults = new SharedValue({ clock: site.clock, what: `limit ranges of ${name}`, load, ...ONCE });
  }

  /**
   * Lists its pods, which proves that it exists and can be read; otherwise it is `closed`. Missing rights for job credentials only warn.
   * Rejects when neither is known.
   */
  async enter(signal: AbortSignal): Promise<void> {
    const { cluster, access } = this.#site;
    try {
      await unlessRefused(cluster.connection.get({ path: this.path, signal }), 403);
      await this.pods.look(signal);
    } catch (error) {
      if (!wasRefused(error, 403, 404)) throw error;
      // A credential that may list pods everywhere gets an empty list of a project that does not exist.
      const isMissing = error.status === 404;
      this.closed = isMissing ? new DriverError("configuration", `there is no project ${this.name}`) : error;
      return;
    }
    this.closed = null;
    const refusal = await access.refusal(this.name, signal);
    if (refusal !== undefined) this.refused(refusal);
  }

  /** Logs that jobs get the launcher's own credential, and remembers it until the provider is opened again. */
  refused(why: string): void {
    this.refusal = why;
    this.#site.log.warn(
      { provider: this.#site.config.name, project: this.name },
      `jobs in project ${this.name} get the launcher's own credential: it may not make service accounts, roles and tokens there; grant it the role admin of the project`,
    );
  }

  /** The strictest of its quotas. What a scope counts is the server's to say: it answers "exceeded quota" then. */
  async quota(signal: AbortSignal): Promise<Resources> {
    const least: Record<string, number> = {};
    for (const { spec } of await this.#optional<ResourceQuota>("resourcequotas", signal))
      if (!spec?.scopes?.length && spec?.scopeSelector === undefined)
        for (const [name, amount] of Object.entries(quotaAmounts(spec?.hard ?? {})))
          least[name] = Math.min(least[name] ?? amount, amount);
    return least;
  }

  /** Amounts of one node, with the project's defaults for labels that name none. */
  async need({ name, own: { amounts } }: LabelConfig<KubeLabelOwn>, signal: AbortSignal): Promise<Resources> {
    if (this.closed !== null) await this.enter(signal);
    if (this.closed !== null)
      throw new DriverError("configuration", `pool ${this.name}: ${messageOf(this.closed)}`, {
        cause: this.closed,
      });
    const pool = this.#site.config.pools.find((one) => one.name === this.name);
    if (!pool?.own.unsized.has(name)) return amounts;
    const added = await this.#defaults.get(signal);
    const missing = ["cores", "ram"].filter((one) => one in added && !amounts[one]);
    return { ...amounts, ...Object.fromEntries(missing.map((one) => [one, added[one]!])) };
  }

  /** None for a credential without the right to read them. It learns of limits from "exceeded quota" errors. */
  async #optional<T>(what: string, signal: AbortSignal): Promise<readonly T[]> {
    const listed = listAll<T>(this.#site.cluster.connection, `${this.path}/${what}`, signal);
    return (await unlessRefused(listed, 403))?.items ?? [];
  }
}
