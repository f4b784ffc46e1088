import {
  add,
  DriverError,
  type LabelConfig,
  messageOf,
  type PoolConfig,
  type Resources,
  unlessRefused,
  wasRefused,
} from "@nodeyard/driver";
import { amountsOf, quotaAmounts } from "../amounts.ts";
import type { KubeObject, List } from "../client/index.ts";
import type { Seen } from "../clusters.ts";
import type { KubeLabelOwn, KubePoolOwn } from "../config.ts";
import type { Site } from "../site.ts";

/** The fields of a ResourceQuota that are read. */
interface ResourceQuota extends KubeObject {
  readonly spec?: {
    readonly hard?: Readonly<Record<string, string>>;
    readonly scopes?: readonly string[];
    readonly scopeSelector?: object;
  };
}
/** The fields of a LimitRange that are read. */
interface LimitRange extends KubeObject {
  readonly spec: {
    readonly limits: readonly {
      readonly type: string;
      readonly default?: Readonly<Record<string, string>>;
      readonly defaultRequest?: Readonly<Record<string, string>>;
      readonly max?: Readonly<Record<string, string>>;
    }[];
  };
}

/** The existing projects of a provider's pools, which have their names: watches of their pods, rights, quotas and defaults. */
export class Projects {
  readonly #site: Site;
  /** One watch per project, which lives as long as the provider. The promise is stored, so that concurrent callers share the first list. */
  readonly #seen = new Map<string, Promise<Seen>>();
  /** Projects in which the launcher may not create job credentials, with the reason. Their jobs get the launcher's own. */
  readonly #refusals = new Map<string, string>();
  /** Projects that could not be read since the provider opened, with the reason: each is its pool's fault, and the others serve. */
  readonly #closed = new Map<string, unknown>();
  /** `#defaults` per project, read once: a LimitRange that changes later counts after the provider was opened again. */
  readonly #ranges = new Map<string, Promise<Resources>>();

  constructor(site: Site) {
    this.#site = site;
  }

  /** Names of those that could be read. */
  get entered(): readonly string[] {
    return this.#all.filter((project) => !this.#closed.has(project));
  }

  /** The watch of a project's pods, which all its nodes share. After a failure the next call tries again. */
  pods(project: string, signal: AbortSignal): Promise<Seen> {
    const known = this.#seen.get(project) ?? this.#site.cluster.podsInOne(project, signal);
    this.#seen.set(project, known);
    known.catch(() => this.#seen.delete(project));
    return known;
  }

  /** Why jobs of a project get the launcher's own credential; undefined: they get one of their own. */
  refusal(project: string): string | undefined {
    return this.#refusals.get(project);
  }

  /** Logs that jobs of a project get the launcher's own credential, and remembers it until the provider is opened again. */
  refused(project: string, error: unknown): void {
    this.#refusals.set(project, messageOf(error));
    this.#site.log.warn(
      { provider: this.#site.config.name, project },
      `jobs in project ${project} get the launcher's own credential: it may not make service accounts, roles and tokens there; grant it the role admin of the project`,
    );
  }

  /**
   * Lists each project's pods once, which proves that the projects exist and can be read. Rejects when none can, or when one cannot that
   * is only looked at: a list without it would be incomplete. Missing rights for job credentials only warn.
   */
  async open(signal: AbortSignal): Promise<void> {
    for (const project of this.#all)
      await this.#enter(project, signal).catch((error: unknown) => {
        if (!isClosed(error) || this.#site.purpose === "look") throw error;
        this.#closed.set(project, error);
      });
    if (this.entered.length === 0) for (const error of this.#closed.values()) throw error;
  }

  /** A watch whose first list failed has been released by the cluster. */
  close(): void {
    for (const one of this.#seen.values()) one.then(({ release }) => release()).catch(() => {});
  }

  /** The sum of the projects' quotas, for those amounts that every project limits. */
  async quota(signal: AbortSignal): Promise<Resources> {
    const projects = await Promise.all(
      this.entered.map(async (project) => {
        const items = await this.#optional<ResourceQuota>(project, "resourcequotas", signal);
        // What a scope counts is the server's to say: it answers "exceeded quota" then.
        const whole = items.filter(({ spec }) => !spec?.scopes?.length && spec?.scopeSelector === undefined);
        return whole.map(({ spec }) => quotaAmounts(spec?.hard ?? {})).reduce(strictest, {});
      }),
    );
    // Each pool has its own project, so only a limit that all projects have limits the provider.
    const [head, ...rest] = projects;
    return rest.reduce((sum, one) => common(sum, one), head ?? {});
  }

  /**
   * Amounts of one node, with the project's defaults for labels that name none. The pool is found by the label's identity,
   * because several pools may have a label of that name.
   */
  async need(label: LabelConfig<KubeLabelOwn>, signal: AbortSignal): Promise<Resources> {
    const pool = this.#site.config.pools.find(({ labels }) => labels.get(label.name) === label) as
      | PoolConfig<KubePoolOwn>
      | undefined;
    if (pool !== undefined && this.#closed.has(pool.name))
      await this.#enter(pool.name, signal).catch((error: unknown) => {
        const why = `pool ${pool.name}: ${messageOf(error)}`;
        throw isClosed(error) ? new DriverError("configuration", why, { cause: error }) : error;
      });
    if (pool === undefined || !pool.own.unsized.has(label.name)) return label.own.amounts;
    const known = this.#ranges.get(pool.name) ?? this.#defaults(pool.name, signal);
    this.#ranges.set(pool.name, known);
    known.catch(() => this.#ranges.delete(pool.name));
    const added = await known;
    return { ...label.own.amounts, ...filled(label.own.amounts, added) };
  }

  get #all(): readonly string[] {
    return this.#site.config.pools.map(({ name }) => name);
  }

  /** Begins to look at a project. Rejects when it is missing or cannot be read (`isClosed`), or is not known to be. */
  async #enter(project: string, signal: AbortSignal): Promise<void> {
    const { cluster, access } = this.#site;
    const read = cluster.connection.get({ path: `/api/v1/namespaces/${project}`, signal });
    await unlessRefused(read, 403).catch((error: unknown) => {
      // A credential that may list pods everywhere gets an empty list of a project that does not exist.
      if (wasRefused(error, 404)) throw new DriverError("configuration", `there is no project ${project}`);
      throw error;
    });
    await this.pods(project, signal);
    this.#closed.delete(project);
    const refusal = await access.refusal(project, signal);
    if (refusal !== undefined) this.refused(project, new Error(refusal));
  }

  /** Amounts that the project's LimitRange adds to a container without amounts of its own. */
  async #defaults(project: string, signal: AbortSignal): Promise<Resources> {
    const items = await this.#optional<LimitRange>(project, "limitranges", signal);
    const limits = items.flatMap(({ spec }) => spec.limits).filter(({ type }) => type === "Container");
    const amounts: Record<string, number> = {};
    for (const one of limits) Object.assign(amounts, amountsOf({ ...one.default, ...one.defaultRequest }));
    return amounts;
  }

  /** None for a credential without the right to read them. It learns of limits from "exceeded quota" errors. */
  async #optional<T extends KubeObject>(
    project: string,
    what: string,
    signal: AbortSignal,
  ): Promise<readonly T[]> {
    const path = `/api/v1/namespaces/${project}/${what}`;
    const listed = this.#site.cluster.connection.get<List<T>>({ path, signal });
    return (await unlessRefused(listed, 403))?.items ?? [];
  }
}

/** Whether an error says that a project is missing or cannot be read. */
function isClosed(error: unknown): boolean {
  return wasRefused(error, 403) || (error instanceof DriverError && error.kind === "configuration");
}

/** The smaller limit of each amount. */
function strictest(a: Resources, b: Resources): Resources {
  const least: Record<string, number> = { ...a };
  for (const [name, amount] of Object.entries(b)) least[name] = Math.min(least[name] ?? amount, amount);
  return least;
}

/** The sums of the amounts that both have. */
function common(a: Resources, b: Resources): Resources {
  const both = Object.keys(a).filter((name) => name in b);
  const sum = add(a, b);
  return Object.fromEntries(both.map((name) => [name, sum[name]!]));
}

/** Defaults for the amounts that the label leaves at 0. */
function filled(amounts: Resources, defaults: Resources): Resources {
  return Object.fromEntries(
    Object.entries(defaults).filter(([name]) => ["cores", "ram"].includes(name) && !amounts[name]),
  );
}
