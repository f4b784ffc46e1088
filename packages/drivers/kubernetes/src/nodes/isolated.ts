import {
  type CreateOrder,
  DriverError,
  type ExternalId,
  type LabelConfig,
  type Machine,
  type Resource,
  type Step,
  type StepContext,
  sameNode,
  type Tag,
  unlessRefused,
  wasRefused,
} from "@nodeyard/driver";
import type { KubeObject, Pod } from "../client/index.ts";
import type { Seen } from "../clusters.ts";
import { type KubeLabelOwn, POD_MS } from "../config.ts";
import type { Site } from "../site.ts";
import { aboutOf, labelsOf } from "./about.ts";
import { USER } from "./access.ts";
import { type Homes, homesOf } from "./homes.ts";
import { CALL_MS } from "./owned.ts";
import { hasEnded, podReady } from "./ready.ts";
import { machineOf, markOf, portOf } from "./record.ts";
import type { Nodes } from "./types.ts";

/**
 * Nodes with a namespace or project of their own: drivers `kubernetes` and `openshift`. The namespace is the node: it carries the
 * tag, its name is the external id, and its deletion removes pod, account, role and binding. Nothing is kept in memory but
 * caches, so a launcher that starts again continues with what the cluster has.
 */
export class IsolatedNodes implements Nodes {
  readonly #site: Site;
  readonly #homes: Homes;
  /** Watch of pods in all namespaces; undefined when the credential has no right to it. */
  #pods: Seen | undefined;

  constructor(site: Site) {
    this.#site = site;
    this.#homes = homesOf(site);
  }

  async *create(
    order: CreateOrder,
    { signal, externalId }: StepContext,
  ): AsyncGenerator<Step, Machine, void> {
    const { kind, config, access, cluster } = this.#site;
    const { homes } = this.#homes;
    const label = order.label as LabelConfig<KubeLabelOwn>;
    const [first, second] = namesOf(order.tag);
    // The name that an earlier attempt claimed, or tried to claim, comes first. Otherwise a lost answer could give one node two
    // namespaces.
    const known = await homes.known(order.tag, [first, second], signal);
    const start = known?.metadata.name ?? (externalId === second ? second : first);
    const home = yield* homes.claim(order, [start, second], (id) => id, signal);
    const { name } = home.metadata;

    yield { step: "access", deadlineMs: CALL_MS };
    // Not `admin`, as in Nodepool: that may delete the launcher's own binding, and change the project's description, by which it is known.
    if (kind === "openshift") {
      await access.serviceAccount(name, USER, {}, signal);
      await access.bind(name, "zuul-role", { kind: "ClusterRole", name: "edit" }, USER, {}, signal);
    } else await access.grantIn(name, label.own.isPod, signal);

    let pod: Pod | undefined;
    if (label.own.isPod) {
      yield { step: "pod", deadlineMs: CALL_MS };
      const seen = await cluster.podsIn(name, signal);
      try {
        // Without the note `podReady` would take the pod for a deleted one, because the watch may show it only later.
        seen.watch.note(await claimPod(this.#site, order, name, signal));
        yield { step: "boot", deadlineMs: config.own.roomMs + POD_MS + CALL_MS };
        const place = { tag: order.tag, namespace: name, name: label.name };
        pod = await podReady(this.#site, seen.watch, place, signal);
      } finally {
        seen.release();
      }
    }

    yield { step: "token", deadlineMs: CALL_MS };
    const port = await this.#accessOf(name, pod?.metadata.name ?? null, signal);
    const place = { namespace: name, pod: pod?.metadata.name ?? null, isOwn: true };
    return machineOf(name, place, port, { cloud: config.own.context, pod, resources: label.own.amounts });
  }

  remove(tag: Tag, { signal, externalId }: StepContext): AsyncGenerator<Step, void, void> {
    return this.#homes.homes.remove(tag, namesOf(tag), signal, storedName(tag, externalId));
  }

  /**
   * All namespaces that the credential can list. `ended` marks nodes whose pod has ended or was evicted, so that the launcher
   * replaces them.
   */
  async list(signal: AbortSignal): Promise<readonly Resource[]> {
    const pods = this.#pods;
    return (await this.#homes.homes.all(signal)).map((home) => {
      const { tag, resources, pod } = aboutOf(home);
      const { name: id } = home.metadata;
      const seen = pod === null ? undefined : pods?.watch.get(pod, id);
      // A missing pod was evicted or deleted, or is not made yet: only ready nodes are judged by it. The watch has pods of this installation
      // only.
      const isOurs = tag?.installation === this.#site.installation;
      const isMissing = pod !== null && pods !== undefined && isOurs && seen === undefined;
      const ended = isMissing || (seen !== undefined && hasEnded(seen));
      // A namespace of another owner does not count as a machine.
      const type = tag === null ? "namespace" : "instance";
      return { type, id, tag, resources, ...(ended ? { ended } : {}) };
    });
  }

  async find(tag: Tag, signal: AbortSignal, stored: ExternalId | null = null) {
    return (await this.#homes.homes.find(tag, namesOf(tag), signal, storedName(tag, stored)))?.metadata.name;
  }

  async removeResource({ id, tag }: Resource, signal: AbortSignal): Promise<void> {
    // Read again: since the caller's list the namespace may have been deleted, and its name been taken by another owner.
    const there = (await this.#homes.homes.all(signal)).find(({ metadata }) => metadata.name === id);
    if (there === undefined || tag === null || !sameNode(aboutOf(there).tag, tag)) return;
    await this.#homes.homes.erase(there, signal);
  }

  /**
   * None: a ResourceQuota counts in one namespace, and each node has its own. Whether a pod fits is decided by the cluster's scheduler
   * (docs/design/kubernetes.md).
   */
  async quota() {
    return {};
  }

  async need(label: LabelConfig<KubeLabelOwn>) {
    return label.own.amounts;
  }

  async stands(tag: Tag, signal: AbortSignal): Promise<void> {
    const home = await this.#standing(tag, signal);
    const { name } = home.metadata;
    const { pod } = aboutOf(home);
    if (pod === null) return;
    // A drained pod is not there at all. The watch may not show a new one yet, and a credential may lack the right to it.
    const there = this.#pods?.watch.get(pod, name) ?? (await podOf(this.#site, name, pod, signal));
    if (there === undefined || hasEnded(there))
      throw new DriverError("not-found", `pod ${name}/${pod} is gone or has ended`);
  }

  async renew(tag: Tag, signal: AbortSignal) {
    const home = await this.#standing(tag, signal);
    const { tokenMs } = this.#site.config.own;
    const age = this.#site.clock.now() - Date.parse(home.metadata.creationTimestamp ?? "");
    // A token younger than a quarter of its lifetime lasts for the job. With lifetime 0 tokens do not expire.
    if (tokenMs === 0 || age < tokenMs / 4) return undefined;
    return this.#accessOf(home.metadata.name, aboutOf(home).pod, signal);
  }

  async open(signal: AbortSignal): Promise<void> {
    await this.#homes.watch(signal);
    // The watch is kept open. If it ended with each launch, each launch would list all pods again.
    this.#pods = await this.#site.cluster.podsInAll(signal);
  }

  close(): void {
    this.#homes.close();
    this.#pods?.release();
  }

  /** The record's `connection_port` with a new token. Called at the launch and again before a ready node is handed out late. */
  async #accessOf(namespace: string, pod: string | null, signal: AbortSignal) {
    const { kind, access, cluster, config } = this.#site;
    const token = await access.token(namespace, USER, config.own.tokenMs, signal);
    return portOf(kind, { namespace, pod, isOwn: true }, await cluster.connection.access(), token);
  }

  /**
   * The namespace of a node. Rejects with kind "not-found" when it is gone or being deleted; the launcher then takes the node out
   * of service.
   */
  async #standing(tag: Tag, signal: AbortSignal): Promise<KubeObject> {
    const home = await this.#homes.homes.known(tag, namesOf(tag), signal);
    if (home !== undefined && home.metadata.deletionTimestamp === undefined) return home;
    throw new DriverError("not-found", `the namespace of node ${tag.nodeId} is gone`);
  }
}

/** Under a name of the node's: an id may be from an older version or of another node. */
function storedName(tag: Tag, id: ExternalId | null): string | null {
  return namesOf(tag).find((name) => name === id) ?? null;
}

/** Nodepool's name for the namespace, and a second name for when the first is taken. */
function namesOf(tag: Tag): readonly [string, string] {
  const name = `${tag.pool}-${tag.nodeId}`;
  return [name, `${name}-${markOf(tag)}`];
}

/** Creates the node's pod, or reads the one of that name, which an earlier attempt created: the namespace is this node's own. */
async function claimPod(
  site: Site,
  order: CreateOrder,
  namespace: string,
  signal: AbortSignal,
): Promise<Pod> {
  const { name, own } = order.label as LabelConfig<KubeLabelOwn>;
  const path = `/api/v1/namespaces/${namespace}/pods`;
  // The namespace's default account would be an error here: its controller creates it a moment after the namespace.
  const spec = own.isVerbatim ? own.spec : { ...own.spec, serviceAccountName: USER };
  const body = { metadata: { name, labels: labelsOf(order, site.log), annotations: own.annotations }, spec };
  try {
    return await site.cluster.connection.post<Pod>({ path, body, signal });
  } catch (error) {
    if (!wasRefused(error, "AlreadyExists")) throw error;
    return readPod(site, namespace, name, signal);
  }
}

/** The pod of a node; undefined when there is none. */
function podOf(site: Site, namespace: string, name: string, signal: AbortSignal): Promise<Pod | undefined> {
  return unlessRefused(readPod(site, namespace, name, signal));
}

function readPod(site: Site, namespace: string, name: string, signal: AbortSignal): Promise<Pod> {
  return site.cluster.connection.get<Pod>({ path: `/api/v1/namespaces/${namespace}/pods/${name}`, signal });
}
