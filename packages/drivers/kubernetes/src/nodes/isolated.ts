import { type Cloud, DriverError, orThrow, unlessRefused } from "@nodeyard/driver";
import type { KubeObject, ObjectWatch } from "../client/index.ts";
import type { Site } from "../cluster.ts";
import { type KubeOrder, POD_MS } from "../config.ts";
import { ABOUT, aboutOf, aboutText, labelsOf, portOf } from "./about.ts";
import { PROJECT_ROLE, USER } from "./access.ts";
import { kubeCloud } from "./cloud.ts";
import { CALL_MS } from "./machines.ts";
import { hasEnded, podReady } from "./ready.ts";

const NAMESPACES = "/api/v1/namespaces";
const PROJECT_API = "/apis/project.openshift.io/v1";
const podsIn = (namespace: string) => `${NAMESPACES}/${namespace}/pods`;

/** Drivers `kubernetes` and `openshift`: the namespace is the node. It carries the tag, its name is the external id, and all else goes with it. */
export function isolatedNodes(site: Site, closed: AbortSignal): Cloud<KubeObject> {
  const { kind, config, access, cluster, installation, log } = site;
  const isProject = kind === "openshift";
  const path = isProject ? `${PROJECT_API}/projects` : NAMESPACES;
  // A ProjectRequest drops labels, so projects are identified by an annotation, and no selector finds them.
  const homes = cluster.watch(path, isProject ? null : cluster.ours);
  const allPods = cluster.watch("/api/v1/pods");
  /** Pods of all namespaces; undefined when the credential has no right to it. */
  let pods: ObjectWatch | undefined;

  const readPod = (namespace: string, name: string, signal: AbortSignal) =>
    unlessRefused(cluster.get<KubeObject>({ path: `${podsIn(namespace)}/${name}`, signal }));

  /** Creates the node's pod, or reads the one of that name, which an earlier attempt created: the namespace is this node's own. */
  async function claimPod(order: KubeOrder, namespace: string, signal: AbortSignal): Promise<KubeObject> {
    const { name, own } = order.label;
    // The namespace's default account would be an error here: its controller creates it a moment after the namespace.
    const spec = own.isVerbatim ? own.spec : { ...own.spec, serviceAccountName: USER };
    const body = { metadata: { name, labels: labelsOf(order, log), annotations: own.annotations }, spec };
    const made = cluster.post<KubeObject>({ path: podsIn(namespace), body, signal });
    const pod = (await unlessRefused(made, "AlreadyExists")) ?? (await readPod(namespace, name, signal));
    return orThrow(pod, `pod ${namespace}/${name} was deleted while it was being made`, "transient");
  }

  const cloud = kubeCloud(
    site,
    {
      ...{ path, namespace: "", what: "namespace", isProject },
      watch: (signal) => homes.look(signal),
      nameOf: ({ tag }) => `${tag.pool}-${tag.nodeId}`,
      make(order, name, signal) {
        const { label } = order;
        const metadata = { name, labels: labelsOf(order, log) };
        // The pod's name is stored with the namespace, so that `list` can tell a missing pod, also for a label that left the configuration.
        const about = aboutText(order, label.own.isPod ? label.name : null);
        if (!isProject) {
          const body = { metadata: { ...metadata, annotations: { [ABOUT]: about } } };
          return cluster.post({ path, body, signal });
        }
        const asked = { apiVersion: "project.openshift.io/v1", kind: "ProjectRequest", metadata };
        const body = { ...asked, description: about };
        return cluster.post({ path: `${PROJECT_API}/projectrequests`, body, signal });
      },
      async *boot(order, { metadata: { name: namespace } }, signal) {
        const { name, own } = order.label;
        yield { step: "access", deadlineMs: CALL_MS };
        const role = isProject ? PROJECT_ROLE : await access.roleOf(own.isPod, signal);
        await access.grant(namespace, USER, role, "zuul-role", signal);
        if (!own.isPod) return undefined;
        yield { step: "pod", deadlineMs: CALL_MS };
        const shared = pods === undefined ? cluster.watch(podsIn(namespace)) : allPods;
        try {
          const watch = await shared.look(signal);
          // Without the note `podReady` would take the pod for a deleted one, because the watch may show it only later.
          watch.note(await claimPod(order, namespace, signal));
          yield { step: "boot", deadlineMs: config.own.roomMs + POD_MS + CALL_MS };
          return await podReady(site, watch, { tag: order.tag, namespace, name }, signal);
        } finally {
          if (shared !== allPods) shared.close();
        }
      },
      async portOf(home, signal) {
        const { name } = home.metadata;
        const token = await access.token(name, USER, config.own.tokenMs, signal);
        return portOf(kind, name, aboutOf(home).pod, await cluster.token(signal), token);
      },
      async stands(home, signal) {
        const { name } = home.metadata;
        const { pod } = aboutOf(home);
        if (pod === null) return;
        // A drained pod is not there at all. The watch may not show a new one yet, and a credential may lack the right to it.
        const there = pods?.get(pod, name) ?? (await readPod(name, pod, signal));
        if (there === undefined || hasEnded(there))
          throw new DriverError("not-found", `pod ${name}/${pod} is gone or has ended`);
      },
      /** Also marks nodes whose pod has ended or was evicted, so that the launcher replaces them. */
      isEnding(home) {
        const { tag, pod } = aboutOf(home);
        if (pod === null || pods === undefined) return false;
        const seen = pods.get(pod, home.metadata.name);
        // A missing pod was evicted or deleted, or is not made yet: only ready nodes are judged by it. The watch has pods of this installation
        // only.
        return seen === undefined ? tag?.installation === installation : hasEnded(seen);
      },
      amounts: (home) => aboutOf(home).resources,
      need: async ({ own }: KubeOrder["label"]) => own.amounts,
    },
    closed,
  );
  return {
    ...cloud,
    untagged: "namespace",
    /** None: a ResourceQuota counts in one namespace, and each node has its own. Whether a pod fits is the scheduler's to say. */
    quota: async () => ({}),
    async check(signal) {
      await homes.look(signal);
      // The watch is kept open. If it ended with each launch, each launch would list all pods again.
      pods = await unlessRefused(allPods.look(signal), 403);
    },
    close() {
      homes.close();
      allPods.close();
      return site.release();
    },
  };
}
