import {
  type CreateOrder,
  DriverError,
  type ExternalId,
  type LabelConfig,
  type Machine,
  type Resource,
  type Resources,
  type Step,
  type StepContext,
  type Tag,
  wasRefused,
} from "@nodeyard/driver";
import { containerAmounts } from "../amounts.ts";
import type { Pod } from "../client/index.ts";
import { type KubeLabelOwn, POD_MS } from "../config.ts";
import type { Site } from "../site.ts";
import { ABOUT, aboutOf, aboutText, labelsOf } from "./about.ts";
import { podRules } from "./access.ts";
import { CALL_MS, Owned } from "./owned.ts";
import { Projects } from "./projects.ts";
import { hasEnded, podReady } from "./ready.ts";
import { machineOf, markOf, portOf } from "./record.ts";
import type { Nodes } from "./types.ts";

/** Nodes that are pods in an existing project: driver `openshiftpods`. The name of the pool is that of the project. */
export class SharedNodes implements Nodes {
  readonly #site: Site;
  readonly #projects: Projects;

  constructor(site: Site) {
    this.#site = site;
    this.#projects = new Projects(site);
  }

  async *create(order: CreateOrder, { signal }: StepContext): AsyncGenerator<Step, Machine, void> {
    const { tag } = order;
    const label = order.label as LabelConfig<KubeLabelOwn>;
    const first = `${label.name}-${tag.nodeId}`;
    // The first name is Nodepool's. Another installation may use it in the same project, which is why there is a second one.
    const second = `${first}-${markOf(tag)}`;
    const mine = this.#in(tag.pool);
    // An earlier attempt may have taken the second name, so the pod that exists decides.
    const start = (await mine.known(tag, null, signal))?.metadata.name ?? first;
    const idOf = (name: string) => `${tag.pool}-${name}`;
    const made = yield* mine.claim(order, [start, second], idOf, signal);
    const { name } = made.metadata;

    const { own } = this.#site.config;
    yield { step: "boot", deadlineMs: own.roomMs + POD_MS + CALL_MS };
    const { watch } = await this.#projects.pods(tag.pool, signal);
    const pod = await podReady(this.#site, watch, { tag, namespace: tag.pool, name }, signal);

    yield { step: "token", deadlineMs: CALL_MS };
    const port = await this.#portFor(pod, signal);
    const refusal = this.#projects.refusal(tag.pool);
    if (refusal !== undefined)
      this.#site.remark(tag, `jobs in project ${tag.pool} get the launcher's own credential: it ${refusal}`);
    const place = { namespace: tag.pool, pod: name, isOwn: false };
    const facts = { cloud: own.context, pod, resources: await this.need(label, signal) };
    return machineOf(idOf(name), place, port, facts);
  }

  remove(tag: Tag, { signal, externalId }: StepContext): AsyncGenerator<Step, void, void> {
    return this.#in(tag.pool).remove(tag, null, signal, podName(tag, externalId));
  }

  /**
   * Pods that the credential can see in the pools' projects. Those of others count with their containers' requests, as they use
   * the quota.
   */
  async list(signal: AbortSignal): Promise<readonly Resource[]> {
    const all = await Promise.all(this.#projects.entered.map((project) => this.#in(project).all(signal)));
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

  async find(tag: Tag, signal: AbortSignal, stored: ExternalId | null = null) {
    const pod = await this.#in(tag.pool).find(tag, null, signal, podName(tag, stored));
    return pod === undefined ? undefined : `${tag.pool}-${pod.metadata.name}`;
  }

  async removeResource({ tag }: Resource, signal: AbortSignal): Promise<void> {
    const pod = tag === null ? undefined : await this.#in(tag.pool).find(tag, null, signal);
    if (pod !== undefined) await this.#in(tag!.pool).erase(pod, signal);
  }

  quota(signal: AbortSignal): Promise<Resources> {
    return this.#projects.quota(signal);
  }

  need(label: LabelConfig<KubeLabelOwn>, signal: AbortSignal): Promise<Resources> {
    return this.#projects.need(label, signal);
  }

  /** Rejects with kind "not-found" when the pod is gone or has ended: the launcher then takes the node out of service. */
  async stands(tag: Tag, signal: AbortSignal): Promise<Pod> {
    const pod = await this.#in(tag.pool).known(tag, null, signal);
    if (pod !== undefined && !hasEnded(pod)) return pod;
    throw new DriverError("not-found", `the pod of node ${tag.nodeId} is gone or has ended`);
  }

  async renew(tag: Tag, signal: AbortSignal) {
    const pod = await this.stands(tag, signal);
    const { tokenMs } = this.#site.config.own;
    // A node that waited long gets a fresh token, so that its job has most of the token's time.
    const age = this.#site.clock.now() - Date.parse(pod.metadata.creationTimestamp ?? "");
    return tokenMs === 0 || age < tokenMs / 4 ? undefined : this.#portFor(pod, signal);
  }

  open(signal: AbortSignal): Promise<void> {
    return this.#projects.open(signal);
  }

  close(): void {
    this.#projects.close();
  }

  /** Pods of nodes in a pool's project. Their names contain the label, which a tag does not have, so they are searched by their tags. */
  #in(project: string): Owned<Pod> {
    const { cluster, clock, log } = this.#site;
    const path = `/api/v1/namespaces/${project}/pods`;
    return new Owned<Pod>({
      ...{ connection: cluster.connection, clock, path, namespace: project, what: "pod", ours: cluster.ours },
      watch: async (signal) => (await this.#projects.pods(project, signal)).watch,
      make(order, name, signal) {
        const label = order.label as LabelConfig<KubeLabelOwn>;
        const annotations = { ...label.own.annotations, [ABOUT]: aboutText(order.tag, label, name) };
        const metadata = { name, labels: labelsOf(order, log), annotations };
        return cluster.connection.post({ path, body: { metadata, spec: label.own.spec }, signal });
      },
    });
  }

  /**
   * The record's `connection_port` with a credential for this pod only: a service account, a role that names the pod, and their
   * binding. The pod owns them, so the cluster deletes them with the pod: some time after it, so that their name has a part of the pod's
   * uid. Under the pod's name alone those of an earlier pod of the node would be taken for its own, and then collected. When the launcher
   * has no right to create them, the job gets the launcher's own credential, as in Nodepool. Safe to repeat: what exists is kept, and the
   * token is a new one.
   */
  async #portFor({ metadata: { name, uid, namespace = "" } }: Pod, signal: AbortSignal) {
    const { kind, access: jobs, cluster, config } = this.#site;
    const place = { namespace, pod: name, isOwn: false };
    const access = await cluster.connection.access();
    if (this.#projects.refusal(namespace) === undefined) {
      const user = `${name}-${uid.slice(0, 8)}`;
      const owner = { apiVersion: "v1", kind: "Pod", name, uid };
      const more = { ownerReferences: [owner] };
      try {
        await Promise.all([
          jobs.serviceAccount(namespace, user, more, signal),
          jobs
            .role(namespace, user, podRules([name]), more, signal)
            .then(() => jobs.bind(namespace, user, { kind: "Role", name: user }, user, more, signal)),
        ]);
        const token = await jobs.token(namespace, user, config.own.tokenMs, signal);
        return portOf(kind, place, access, token);
      } catch (error) {
        // A 403 can come although `open` found the rights: roles change while the launcher runs.
        if (!wasRefused(error, 403)) throw error;
        this.#projects.refused(namespace, error);
      }
    }
    const own = access.authorization;
    return portOf(kind, place, access, own === null ? null : own.slice(own.indexOf(" ") + 1));
  }
}

/** The name of the pod in a stored id; null for an id of another form. */
function podName({ pool }: Tag, id: ExternalId | null): string | null {
  return typeof id === "string" && id.startsWith(`${pool}-`) ? id.slice(pool.length + 1) : null;
}

/** What a pod of others takes of the quota: nothing when it has ended, as the server counts. */
function used({ spec, status }: Pod): Resources {
  if (status?.phase === "Succeeded" || status?.phase === "Failed") return {};
  return { ...containerAmounts(spec.containers), instances: 1 };
}
