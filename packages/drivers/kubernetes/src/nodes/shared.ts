import {
  add,
  type CreateOrder,
  DriverError,
  type ExternalId,
  type LabelConfig,
  type Machine,
  messageOf,
  type PoolConfig,
  type Resource,
  type Resources,
  type Step,
  type StepContext,
  type Tag,
} from "@nodeyard/driver";
import { amountsOf, containerAmounts, quotaAmounts } from "../amounts.ts";
import { KubeError, type KubeObject, type List, type Pod } from "../client/index.ts";
import type { Seen } from "../clusters.ts";
import { type KubeLabelOwn, type KubePoolOwn, POD_MS } from "../config.ts";
import type { Site } from "../site.ts";
import { ABOUT, aboutOf, aboutText, labelsOf } from "./about.ts";
import { podRules } from "./access.ts";
import { CALL_MS, Owned } from "./owned.ts";
import { hasEnded, podReady } from "./ready.ts";
import { machineOf, markOf, portOf } from "./record.ts";
import type { Nodes } from "./types.ts";

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

/** Nodes that are pods in an existing project: driver `openshiftpods`. The name of the pool is that of the project. */
export function sharedNodes(site: Site): Nodes {
  const { connection } = site.cluster;
  /** One watch per project, which lives as long as the provider. The promise is stored, so that concurrent callers share the first list. */
  const seen = new Map<string, Promise<Seen>>();
  /** Projects in which the launcher may not create job credentials, with the reason. Their jobs get the launcher's own. */
  const refusals = new Map<string, string>();
  const pools = site.config.pools.map(({ name }) => name);
  /** Projects that could not be read since the provider opened, with the reason: each is its pool's fault, and the others serve. */
  const closed = new Map<string, unknown>();

  /** The watch of a project's pods, which all its nodes share. After a failure the next call tries again. */
  function pods(project: string, signal: AbortSignal): Promise<Seen> {
    const known = seen.get(project) ?? site.cluster.podsInOne(project, signal);
    seen.set(project, known);
    known.catch(() => seen.delete(project));
    return known;
  }

  const entered = () => pools.filter((project) => !closed.has(project));

  const pathOf = (project: string) => `/api/v1/namespaces/${project}/pods`;

  /** Pods of nodes in a pool's project. Their names contain the label, which a tag does not have, so they are searched by their tags. */
  const nodesIn = (project: string) =>
    new Owned<Pod>({
      connection,
      clock: site.clock,
      path: pathOf(project),
      namespace: project,
      what: "pod",
      ours: site.cluster.ours,
      watch: async (signal) => (await pods(project, signal)).watch,
      make(order, name, signal) {
        const label = order.label as LabelConfig<KubeLabelOwn>;
        const annotations = { ...label.own.annotations, [ABOUT]: aboutText(order.tag, label, name) };
        const metadata = { name, labels: labelsOf(order, site.log), annotations };
        return connection.post({ path: pathOf(project), body: { metadata, spec: label.own.spec }, signal });
      },
    });

  /** The pod of a node. Rejects with kind "not-found" when it is gone or has ended: the launcher then takes the node out of service. */
  async function standing(tag: Tag, signal: AbortSignal): Promise<Pod> {
    const pod = await nodesIn(tag.pool).known(tag, null, signal);
    if (pod !== undefined && !hasEnded(pod)) return pod;
    throw new DriverError("not-found", `the pod of node ${tag.nodeId} is gone or has ended`);
  }

  async function* create(order: CreateOrder, { signal }: StepContext): AsyncGenerator<Step, Machine, void> {
    const { tag } = order;
    const label = order.label as LabelConfig<KubeLabelOwn>;
    const first = `${label.name}-${tag.nodeId}`;
    // The first name is Nodepool's. Another installation may use it in the same project, which is why there is a second one.
    const second = `${first}-${markOf(tag)}`;
    const mine = nodesIn(tag.pool);
    // An earlier attempt may have taken the second name, so the pod that exists decides.
    const start = (await mine.known(tag, null, signal))?.metadata.name ?? first;
    const idOf = (name: string) => `${tag.pool}-${name}`;
    const made = yield* mine.claim(order, [start, second], idOf, signal);
    const { name } = made.metadata;

    yield { step: "boot", deadlineMs: site.config.own.roomMs + POD_MS + CALL_MS };
    const { watch } = await pods(tag.pool, signal);
    const pod = await podReady(site, watch, { tag, namespace: tag.pool, name }, signal);

    yield { step: "token", deadlineMs: CALL_MS };
    const port = await portFor(pod, signal);
    const refusal = refusals.get(tag.pool);
    if (refusal !== undefined)
      site.remark(tag, `jobs in project ${tag.pool} get the launcher's own credential: it ${refusal}`);
    const place = { namespace: tag.pool, pod: name, isOwn: false };
    const facts = { cloud: site.config.own.context, pod, resources: await need(label, signal) };
    return machineOf(idOf(name), place, port, facts);
  }

  /**
   * The record's `connection_port` with a credential for this pod only: a service account, a role that names the pod, and their
   * binding. The pod owns them, so the cluster deletes them with the pod: some time after it, so that their name has a part of the pod's
   * uid. Under the pod's name alone those of an earlier pod of the node would be taken for its own, and then collected. When the launcher
   * has no right to create them, the job gets the launcher's own credential, as in Nodepool. Safe to repeat: what exists is kept, and the
   * token is a new one.
   */
  async function portFor({ metadata: { name, uid, namespace = "" } }: Pod, signal: AbortSignal) {
    const place = { namespace, pod: name, isOwn: false };
    const access = await connection.access();
    if (!refusals.has(namespace)) {
      const user = `${name}-${uid.slice(0, 8)}`;
      const owner = { apiVersion: "v1", kind: "Pod", name, uid };
      const more = { ownerReferences: [owner] };
      try {
        await Promise.all([
          site.access.serviceAccount(namespace, user, more, signal),
          site.access
            .role(namespace, user, podRules([name]), more, signal)
            .then(() => site.access.bind(namespace, user, { kind: "Role", name: user }, user, more, signal)),
        ]);
        const token = await site.access.token(namespace, user, site.config.own.tokenMs, signal);
        return portOf(site.kind, place, access, token);
      } catch (error) {
        // A 403 can come although `open` found the rights: roles change while the launcher runs.
        if (!(error instanceof KubeError && error.status === 403)) throw error;
        say(namespace, error);
      }
    }
    const own = access.authorization;
    return portOf(site.kind, place, access, own === null ? null : own.slice(own.indexOf(" ") + 1));
  }

  /** Logs that jobs of a project get the launcher's own credential, and remembers it until the provider is opened again. */
  function say(project: string, error: unknown): void {
    refusals.set(project, messageOf(error));
    site.log.warn(
      { provider: site.config.name, project },
      `jobs in project ${project} get the launcher's own credential: it may not make service accounts, roles and tokens there; grant it the role admin of the project`,
    );
  }

  /**
   * Pods that the credential can see in the pools' projects. Those of others count with their containers' requests, as they use
   * the quota.
   */
  async function list(signal: AbortSignal): Promise<readonly Resource[]> {
    const all = await Promise.all(entered().map((project) => nodesIn(project).all(signal)));
    return all.flat().map((pod): Resource => {
      const { tag, resources } = aboutOf(pod);
      const { name, namespace = "", deletionTimestamp } = pod.metadata;
      // A pod that is being deleted leaves the list by itself.
      const ended = hasEnded(pod) && deletionTimestamp === undefined;
      const amounts = tag === null ? used(pod) : resources;
      return {
        type: "instance",
        id: `${namespace}-${name}`,
        tag,
        resources: amounts,
        ...(ended ? { ended } : {}),
      };
    });
  }

  /** The sum of the projects' quotas, for those amounts that every project limits. */
  async function quota(signal: AbortSignal): Promise<Resources> {
    const projects = await Promise.all(
      entered().map(async (project) => {
        const path = `/api/v1/namespaces/${project}/resourcequotas`;
        const { items } = await optional(connection.get<List<ResourceQuota>>({ path, signal }));
        // What a scope counts is the server's to say: it answers "exceeded quota" then.
        const whole = items.filter(({ spec }) => !spec?.scopes?.length && spec?.scopeSelector === undefined);
        return whole.map(({ spec }) => quotaAmounts(spec?.hard ?? {})).reduce(strictest, {});
      }),
    );
    // Each pool has its own project, so only a limit that all projects have limits the provider.
    const [head, ...rest] = projects;
    return rest.reduce((sum, one) => common(sum, one), head ?? {});
  }

  /** Begins to look at a project. Rejects when it is missing or cannot be read (`isClosed`), or is not known to be. */
  async function enter(project: string, signal: AbortSignal): Promise<void> {
    try {
      await connection.get({ path: `/api/v1/namespaces/${project}`, signal });
    } catch (error) {
      if (!(error instanceof KubeError && (error.status === 403 || error.status === 404))) throw error;
      // Whoever may list pods everywhere gets an empty list of a project that does not exist.
      if (error.status === 404) throw new DriverError("configuration", `there is no project ${project}`);
    }
    await pods(project, signal);
    closed.delete(project);
    const refusal = await site.access.refusal(project, signal);
    if (refusal !== undefined) say(project, new Error(refusal));
  }

  /** Amounts that the project's LimitRange adds to a container without amounts of its own. */
  async function defaults(project: string, signal: AbortSignal): Promise<Resources> {
    const path = `/api/v1/namespaces/${project}/limitranges`;
    const { items } = await optional(connection.get<List<LimitRange>>({ path, signal }));
    const limits = items.flatMap(({ spec }) => spec.limits).filter(({ type }) => type === "Container");
    const amounts: Record<string, number> = {};
    for (const one of limits) Object.assign(amounts, amountsOf({ ...one.default, ...one.defaultRequest }));
    return amounts;
  }

  /** `defaults` per project, read once: a LimitRange that changes later counts after the provider was opened again. */
  const ranges = new Map<string, Promise<Resources>>();
  /**
   * Amounts of one node, with the project's defaults for labels that name none. The pool is found by the label's identity,
   * because several pools may have a label of that name.
   */
  async function need(label: LabelConfig<KubeLabelOwn>, signal: AbortSignal): Promise<Resources> {
    const pool = site.config.pools.find(({ labels }) => labels.get(label.name) === label) as
      | PoolConfig<KubePoolOwn>
      | undefined;
    if (pool !== undefined && closed.has(pool.name))
      await enter(pool.name, signal).catch((error: unknown) => {
        const why = `pool ${pool.name}: ${messageOf(error)}`;
        throw isClosed(error) ? new DriverError("configuration", why, { cause: error }) : error;
      });
    if (pool === undefined || !pool.own.unsized.has(label.name)) return label.own.amounts;
    const known = ranges.get(pool.name) ?? defaults(pool.name, signal);
    ranges.set(pool.name, known);
    known.catch(() => ranges.delete(pool.name));
    const added = await known;
    return { ...label.own.amounts, ...filled(label.own.amounts, added) };
  }

  return {
    create,
    remove: (tag, { signal, externalId }) =>
      nodesIn(tag.pool).remove(tag, null, signal, podName(tag, externalId)),
    list,
    async find(tag, signal, stored = null) {
      const pod = await nodesIn(tag.pool).find(tag, null, signal, podName(tag, stored));
      return pod === undefined ? undefined : `${tag.pool}-${pod.metadata.name}`;
    },
    async removeResource({ tag }, signal) {
      const pod = tag === null ? undefined : await nodesIn(tag.pool).find(tag, null, signal);
      if (pod !== undefined) await nodesIn(tag!.pool).erase(pod, signal);
    },
    quota,
    need,
    async stands(tag, signal) {
      await standing(tag, signal);
    },
    async renew(tag, signal) {
      const pod = await standing(tag, signal);
      const { tokenMs } = site.config.own;
      // A node that waited long gets a fresh token, so that its job has most of the token's time.
      const age = site.clock.now() - Date.parse(pod.metadata.creationTimestamp ?? "");
      return tokenMs === 0 || age < tokenMs / 4 ? undefined : portFor(pod, signal);
    },
    /**
     * Lists each project's pods once, which proves that the projects exist and can be read. Rejects when none can, or when one cannot that
     * is only looked at: a list without it would be incomplete. Missing rights for job credentials only warn.
     */
    async open(signal) {
      for (const project of pools)
        await enter(project, signal).catch((error: unknown) => {
          if (!isClosed(error) || site.purpose === "look") throw error;
          closed.set(project, error);
        });
      if (closed.size === pools.length) for (const error of closed.values()) throw error;
    },
    // A watch whose first list failed has been released by `#seen`.
    close() {
      for (const one of seen.values()) one.then(({ release }) => release()).catch(() => {});
    },
  };
}

/** The name of the pod in a stored id; null for an id of another form. */
function podName({ pool }: Tag, id: ExternalId | null): string | null {
  return typeof id === "string" && id.startsWith(`${pool}-`) ? id.slice(pool.length + 1) : null;
}

/** Whether an error says that a project is missing or cannot be read. */
function isClosed(error: unknown): boolean {
  return (
    (error instanceof KubeError && error.status === 403) ||
    (error instanceof DriverError && error.kind === "configuration")
  );
}

/** What a pod of others takes of the quota: nothing when it has ended, as the server counts. */
function used({ spec, status }: Pod): Resources {
  if (status?.phase === "Succeeded" || status?.phase === "Failed") return {};
  return { ...containerAmounts(spec.containers), instances: 1 };
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

/** A credential without the right to read quotas gets none. It learns of limits from "exceeded quota" errors. */
async function optional<T>(reply: Promise<List<T>>): Promise<List<T>> {
  try {
    return await reply;
  } catch (error) {
    if (error instanceof KubeError && error.status === 403)
      return { metadata: { resourceVersion: "" }, items: [] };
    throw error;
  }
}
