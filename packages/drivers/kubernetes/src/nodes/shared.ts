import {
  cloudMethods,
  type LabelConfig,
  messageOf,
  type OpenMethods,
  type Resources,
  wasRefused,
} from "@nodeyard/driver";
import { containerAmounts } from "../amounts.ts";
import type { Pod } from "../client/index.ts";
import { type KubeLabelOwn, POD_MS } from "../config.ts";
import type { Site } from "../site.ts";
import { ABOUT, aboutOf, aboutText, labelsOf, portOf } from "./about.ts";
import { podRules } from "./access.ts";
import { kubeCloud } from "./cloud.ts";
import { CALL_MS } from "./machines.ts";
import { Project } from "./project.ts";
import { hasEnded, podReady } from "./ready.ts";

/**
 * Nodes that are pods in existing projects: driver `openshiftpods`. The name of the pool is that of the project. Each project is a cloud of its
 * own; a node's is that of its tag, as its pool may have left the configuration.
 */
export function sharedNodes(site: Site, closed: AbortSignal): OpenMethods {
  const { config, cluster, purpose } = site;
  const known = new Map<string, ReturnType<typeof cloudMethods> & { readonly project: Project }>();
  const of = (name: string) => {
    const old = known.get(name);
    if (old !== undefined) return old;
    const project = new Project(site, name);
    const one = { project, ...cloudMethods(config, podsIn(site, project, closed)) };
    known.set(name, one);
    return one;
  };
  const handover = (name: string) => of(name).offers.handover!;
  const all = config.pools.map(({ name }) => of(name));
  const entered = () => all.filter(({ project }) => project.closed === null);
  return {
    place: () => cluster.connection.place,
    offers: {
      handover: {
        ready: (tag, step) => handover(tag.pool).ready(tag, step),
        access: (tag, step) => handover(tag.pool).access!(tag, step),
      },
    },
    create: (order, step) => of(order.tag.pool).create(order, step),
    remove: (tag, step) => of(tag.pool).remove(tag, step),
    find: (tag, signal, stored) => of(tag.pool).find(tag, signal, stored),
    /** Pods that the credential can see in the pools' projects. Those of others use the quota, too. */
    async list(signal) {
      return (await Promise.all(entered().map((one) => one.list(signal)))).flat();
    },
    async removeResource(resource, signal) {
      if (resource.tag !== null) await of(resource.tag.pool).removeResource(resource, signal);
    },
    async quota(signal) {
      return common(await Promise.all(entered().map(({ project }) => project.quota(signal))));
    },
    /** The pool is found by the label's identity, because several pools may have a label of that name. */
    async need(label, signal) {
      const pool = config.pools.find(({ labels }) => labels.get(label.name) === label);
      const { own } = label as LabelConfig<KubeLabelOwn>;
      return pool === undefined ? own.amounts : of(pool.name).need(label, signal);
    },
    /** Rejects when no project can be read, or when one cannot that is only looked at: a list without it would be incomplete. */
    async check(signal) {
      for (const { project } of all) {
        await project.enter(signal);
        if (project.closed !== null && purpose === "look") throw project.closed;
      }
      if (entered().length === 0) for (const { project } of all) throw project.closed;
    },
    close() {
      for (const { project } of known.values()) project.pods.close();
      return site.release();
    },
  };
}

/** The nodes of one project. */
function podsIn(site: Site, project: Project, closed: AbortSignal) {
  const { kind, config, access, cluster, log, remark } = site;
  const { connection } = cluster;
  const { name: namespace } = project;
  const path = `${project.path}/pods`;
  return kubeCloud<Pod>(
    site,
    {
      ...{ path, namespace, what: "pod", isProject: false },
      watch: (signal) => project.pods.look(signal),
      // Another installation may use the name in the same project, which is why there is a second one.
      nameOf: ({ label, tag }) => `${label.name}-${tag.nodeId}`,
      make(order, name, signal) {
        const label = order.label as LabelConfig<KubeLabelOwn>;
        const annotations = { ...label.own.annotations, [ABOUT]: aboutText(order.tag, label, name) };
        const metadata = { name, labels: labelsOf(order, log), annotations };
        return connection.post({ path, body: { metadata, spec: label.own.spec }, signal });
      },
      async *boot({ tag }, { metadata: { name } }, signal) {
        yield { step: "boot", deadlineMs: config.own.roomMs + POD_MS + CALL_MS };
        return podReady(site, await project.pods.look(signal), { tag, namespace, name }, signal);
      },
      /**
       * With a credential for this pod only: a service account, a role that names the pod, and their binding. The pod owns them, so the
       * cluster deletes them with the pod: some time after it, so that their name has a part of the pod's uid. Under the pod's name alone
       * those of an earlier pod of the node would be taken for its own, and then collected. When the launcher has no right to create them,
       * the job gets the launcher's own credential, as in Nodepool. Safe to repeat: what exists is kept, and the token is a new one.
       */
      async portOf(pod, signal) {
        const { name, uid } = pod.metadata;
        const own = await connection.access();
        const user = `${name}-${uid.slice(0, 8)}`;
        const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name, uid }];
        const role = { kind: "Role", name: user, rules: podRules([name]) } as const;
        if (project.refusal === null)
          try {
            await access.grant(namespace, user, role, user, signal, { ownerReferences });
            const token = await access.token(namespace, user, config.own.tokenMs, signal);
            return portOf(kind, namespace, name, own, token);
          } catch (error) {
            // A 403 can come although `enter` found the rights: roles change while the launcher runs.
            if (!wasRefused(error, 403)) throw error;
            project.refused(messageOf(error));
          }
        const why = `jobs in project ${namespace} get the launcher's own credential: it ${project.refusal}`;
        remark(aboutOf(pod).tag!, why);
        return portOf(kind, namespace, name, own, own.authorization?.replace(/^\S+ /, "") ?? null);
      },
      // A pod that is being deleted leaves the list by itself.
      isEnding: (pod) => hasEnded(pod) && pod.metadata.deletionTimestamp === undefined,
      amounts(pod) {
        const { tag, resources } = aboutOf(pod);
        return tag === null ? used(pod) : resources;
      },
      need: (label, signal) => project.need(label, signal),
    },
    closed,
  );
}

/** What a pod of others takes of the quota: nothing when it has ended, as the server counts. */
function used({ spec, status }: Pod): Resources {
  if (status?.phase === "Succeeded" || status?.phase === "Failed") return {};
  return { ...containerAmounts(spec.containers), instances: 1 };
}

/** The sums of the amounts that all have: each pool has its own project, so only a limit that all projects have limits the provider. */
function common([first = {}, ...rest]: readonly Resources[]): Resources {
  const names = Object.keys(first).filter((name) => rest.every((one) => name in one));
  return Object.fromEntries(
    names.map((name) => [name, rest.reduce((sum, one) => sum + one[name]!, first[name]!)]),
  );
}
