import {
  cloudMethods,
  DriverError,
  messageOf,
  type Resources,
  SharedValue,
  unlessRefused,
  wasRefused,
} from "@nodeyard/driver";
import type { LimitRange, ResourceQuota } from "kubernetes-types/core/v1.d.ts";
import { amountsOf, containerAmounts, quotaAmounts } from "../amounts.ts";
import { listAll } from "../client/index.ts";
import type { Site } from "../cluster.ts";
import { type KubeOrder, POD_MS } from "../config.ts";
import { ABOUT, aboutOf, aboutText, labelsOf, portOf } from "./about.ts";
import { ONCE, podRules } from "./access.ts";
import { kubeCloud, type Nodes } from "./cloud.ts";
import { CALL_MS } from "./machines.ts";
import { hasEnded, podReady } from "./ready.ts";

/** What `projectOf` makes. */
export type Project = ReturnType<typeof projectOf>;

/** An existing project in which nodes are pods: its nodes, the rights there, quotas and defaults. */
export function projectOf(site: Site, namespace: string, ended: AbortSignal) {
  const { kind, config, access, cluster, clock, log, remark } = site;
  const home = `/api/v1/namespaces/${namespace}`;
  const path = `${home}/pods`;
  /** The pods of this installation. */
  const pods = cluster.watch(path);
  const own = "get the launcher's own credential: it";
  /** Why it could not be read since the provider opened: that is its pool's fault, and the others serve. Null: it could. */
  let closed: Error | null = null;
  /** Why jobs get the launcher's own credential, until the provider is opened again; null: they get one of their own. */
  let refusal: string | null = null;

  function refuse(why: string): void {
    refusal = why;
    log.warn(
      { provider: config.name, project: namespace },
      `jobs in project ${namespace} ${own} may not make service accounts, roles and tokens there; grant it the role admin of the project`,
    );
  }

  /** Lists its pods; a project that cannot be read is `closed`. Missing rights for job credentials only warn. Rejects when neither is known. */
  async function enter(signal: AbortSignal): Promise<void> {
    try {
      await unlessRefused(cluster.get({ path: home, signal }), 403);
      await pods.look(signal);
    } catch (error) {
      if (!wasRefused(error, 403, 404)) throw error;
      // A credential that may list pods everywhere gets an empty list of a project that does not exist.
      const missing = `there is no project ${namespace}`;
      closed = error.status === 404 ? new DriverError("configuration", missing) : error;
      return;
    }
    closed = null;
    const why = await access.refusal(namespace, signal);
    if (why !== undefined) refuse(why);
  }

  /** None for a credential without the right to read them. It learns of limits from "exceeded quota" errors. */
  async function optional<T>(what: string, signal: AbortSignal): Promise<readonly T[]> {
    return (await unlessRefused(listAll<T>(cluster, `${home}/${what}`, signal), 403))?.items ?? [];
  }

  /** Amounts that a LimitRange adds to a container without amounts of its own. */
  const defaults = new SharedValue<Resources>({
    ...{ clock, what: `limit ranges of ${namespace}`, ...ONCE },
    async load(signal) {
      const ranges = await optional<LimitRange>("limitranges", signal);
      const limits = ranges
        .flatMap(({ spec }) => spec?.limits ?? [])
        .filter((one) => one.type === "Container");
      return Object.assign({}, ...limits.map((one) => amountsOf({ ...one.default, ...one.defaultRequest })));
    },
  });

  const nodes: Nodes = {
    ...{ path, namespace, what: "pod", isProject: false },
    watch: (signal) => pods.look(signal),
    // Another installation may use the name in the same project, which is why there is a second one.
    nameOf: ({ label, tag }) => `${label.name}-${tag.nodeId}`,
    make(order, name, signal) {
      const { spec, annotations } = order.label.own;
      const about = { ...annotations, [ABOUT]: aboutText(order, name) };
      const metadata = { name, labels: labelsOf(order, log), annotations: about };
      return cluster.post({ path, body: { metadata, spec }, signal });
    },
    async *boot({ tag }, { metadata: { name } }, signal) {
      yield { step: "boot", deadlineMs: config.own.roomMs + POD_MS + CALL_MS };
      return podReady(site, await pods.look(signal), { tag, namespace, name }, signal);
    },
    /**
     * With a credential for this pod only: a service account, a role that names the pod, and their binding. The pod owns them, so the
     * cluster deletes them with the pod: some time after it, so that their name has a part of the pod's uid. Under the pod's name alone
     * those of an earlier pod of the node would be taken for its own, and then collected. When the launcher has no right to create them,
     * the job gets the launcher's own credential, as in Nodepool. Safe to repeat: what exists is kept, and the token is a new one.
     */
    async portOf(pod, signal) {
      const { name, uid } = pod.metadata;
      const launcher = await cluster.token(signal);
      const user = `${name}-${uid.slice(0, 8)}`;
      const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name, uid }];
      const role = { kind: "Role", name: user, rules: podRules([name]) } as const;
      if (refusal === null)
        try {
          await access.grant(namespace, user, role, user, signal, { ownerReferences });
          const token = await access.token(namespace, user, config.own.tokenMs, signal);
          return portOf(kind, namespace, name, launcher, token);
        } catch (error) {
          // A 403 can come although `enter` found the rights: roles change while the launcher runs.
          if (!wasRefused(error, 403)) throw error;
          refuse(messageOf(error));
        }
      remark(aboutOf(pod).tag!, `jobs in project ${namespace} ${own} ${refusal}`);
      return portOf(kind, namespace, name, launcher, launcher.authorization?.replace(/^\S+ /, "") ?? null);
    },
    // A pod that is being deleted leaves the list by itself.
    isEnding: (pod) => hasEnded(pod) && pod.metadata.deletionTimestamp === undefined,
    amounts(pod) {
      const { tag, resources } = aboutOf(pod);
      if (tag !== null) return resources;
      // One of others takes nothing of the quota when it has ended, as the server counts.
      const isOver = pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
      return isOver ? {} : { ...containerAmounts(pod.spec?.containers ?? []), instances: 1 };
    },
    /** With the project's defaults for labels that name none. */
    async need({ own: { amounts, isUnsized } }: KubeOrder["label"], signal) {
      if (closed !== null) await enter(signal);
      if (closed !== null)
        throw new DriverError("configuration", `pool ${namespace}: ${messageOf(closed)}`, { cause: closed });
      const { cores = 0, ram = 0 } = isUnsized ? await defaults.get(signal) : {};
      return { ...amounts, cores: amounts.cores || cores, ram: amounts.ram || ram };
    },
  };

  return {
    ...cloudMethods(config, kubeCloud(site, nodes, ended)),
    enter,
    closed: () => closed,
    /** The strictest of its quotas. What a scope counts is the server's to say: it answers "exceeded quota" then. */
    async quota(signal: AbortSignal): Promise<Resources> {
      const least: Record<string, number> = {};
      for (const { spec } of await optional<ResourceQuota>("resourcequotas", signal))
        if (!spec?.scopes?.length && spec?.scopeSelector === undefined)
          for (const [name, amount] of Object.entries(quotaAmounts(spec?.hard ?? {})))
            least[name] = Math.min(least[name] ?? amount, amount);
      return least;
    },
    close: () => pods.close(),
  };
}
