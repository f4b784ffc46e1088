import { type CreateOrder, type LabelConfig, type Log, sameNode, type Tag } from "@nodeyard/driver";
import { KubeError, type KubeObject, type List, listAll, type ObjectWatch } from "../client/index.ts";
import type { Cluster } from "../clusters.ts";
import type { KubeLabelOwn } from "../config.ts";
import { ABOUT, aboutOf, aboutText, labelsOf } from "./about.ts";

const NAMESPACES = "/api/v1/namespaces";
const PROJECT_API = "/apis/project.openshift.io/v1";

/** Namespaces of `kubernetes` nodes and projects of `openshift` nodes. A project is a namespace that the server creates on request. */
export class Homes {
  readonly #cluster: Cluster;
  readonly #isProject: boolean;
  readonly #log: Log;
  #watching: ObjectWatch<KubeObject> | undefined;

  constructor(cluster: Cluster, isProject: boolean, log: Log) {
    this.#cluster = cluster;
    this.#isProject = isProject;
    this.#log = log;
  }

  close(): void {
    if (this.#watching !== undefined) this.#cluster.release(this.#watching as never);
    this.#watching = undefined;
  }

  /** Namespaces of this installation. Rejects when the credential may not watch them. */
  async watch(signal: AbortSignal): Promise<ObjectWatch<KubeObject>> {
    // A ProjectRequest drops labels, so projects are told apart by their annotation instead of a selector.
    this.#watching ??= this.#cluster.watch(this.#path, this.#isProject ? undefined : this.#cluster.ours);
    return this.#watching.synced(signal);
  }

  /** Creates the namespace, or finds that an earlier attempt created it. Undefined when the name is taken by another owner. */
  async claim(order: CreateOrder, name: string, signal: AbortSignal): Promise<KubeObject | undefined> {
    const watch = await this.watch(signal);
    for (;;) {
      try {
        const made = await this.#make(order, name, signal);
        if (made.metadata.resourceVersion) watch.note(made);
        return made;
      } catch (error) {
        if (!(error instanceof KubeError && error.reason === "AlreadyExists")) throw error;
      }
      const there = await this.#read(name, signal);
      if (there === undefined) continue;
      if (!isOf(there, order.tag)) return undefined;
      if (there.metadata.deletionTimestamp === undefined) return there;
      watch.note(there);
      await this.gone(there, signal);
    }
  }

  /** The namespace with the tag, as the watch shows it. */
  async known(tag: Tag, names: readonly string[], signal: AbortSignal): Promise<KubeObject | undefined> {
    const watch = await this.watch(signal);
    return names.map((name) => watch.get(name)).find((one) => one !== undefined && isOf(one, tag));
  }

  /** The same, but asks the server when the watch does not show it. */
  async find(tag: Tag, names: readonly string[], signal: AbortSignal): Promise<KubeObject | undefined> {
    const known = await this.known(tag, names, signal);
    if (known !== undefined) return known;
    const { provider, nodeId } = tag;
    const selector = `${this.#cluster.ours},nodepool_provider_name=${provider},nodepool_node_id=${nodeId}`;
    const listed = this.#isProject
      ? await Promise.all(names.map((name) => this.#read(name, signal)))
      : await this.#list(selector, signal);
    const found = listed.find((one) => one !== undefined && isOf(one, tag));
    if (found !== undefined) (await this.watch(signal)).note(found);
    return found;
  }

  /** All namespaces that the credential can list, with those of others. */
  all(signal: AbortSignal): Promise<readonly KubeObject[]> {
    return this.#list(undefined, signal);
  }

  /** Starts the deletion, unless the name belongs to another object now (checked by uid). A missing namespace is no error. */
  async delete({ metadata: { name, uid } }: KubeObject, signal: AbortSignal): Promise<void> {
    const body = { propagationPolicy: "Background", preconditions: { uid } };
    try {
      await this.#cluster.connection.delete({ path: `${this.#path}/${name}`, body, signal });
    } catch (error) {
      // 409: the name belongs to another object now, or the deletion has begun already. `gone` waits for the right one.
      if (!(error instanceof KubeError && (error.status === 404 || error.status === 409))) throw error;
    }
  }

  /** Resolves when the namespace is gone. Kubernetes removes a namespace only after everything in it. */
  async gone({ metadata: { name, uid } }: KubeObject, signal: AbortSignal): Promise<void> {
    const watch = await this.watch(signal);
    await watch.wait({ name }, (there) => (there?.metadata.uid === uid ? undefined : true), signal);
  }

  get #path(): string {
    return this.#isProject ? `${PROJECT_API}/projects` : NAMESPACES;
  }

  async #make(order: CreateOrder, name: string, signal: AbortSignal): Promise<KubeObject> {
    const label = order.label as LabelConfig<KubeLabelOwn>;
    const labels = labelsOf(order, this.#log);
    const about = aboutText(order.tag, label, label.own.isPod ? label.name : null);
    if (!this.#isProject) {
      const body = { metadata: { name, labels, annotations: { [ABOUT]: about } } };
      return this.#cluster.connection.post({ path: NAMESPACES, body, signal });
    }
    const metadata = { name, labels };
    const path = `${PROJECT_API}/projectrequests`;
    const request = {
      apiVersion: "project.openshift.io/v1",
      kind: "ProjectRequest",
      metadata,
      description: about,
    };
    return this.#cluster.connection.post({ path, body: request, signal });
  }

  async #read(name: string, signal: AbortSignal): Promise<KubeObject | undefined> {
    try {
      return await this.#cluster.connection.get<KubeObject>({ path: `${this.#path}/${name}`, signal });
    } catch (error) {
      // OpenShift answers 403 for a project of another owner, also for reads. The name is taken.
      if (error instanceof KubeError && error.status === 404) return undefined;
      if (error instanceof KubeError && error.status === 403 && this.#isProject) return FOREIGN;
      throw error;
    }
  }

  async #list(labelSelector: string | undefined, signal: AbortSignal): Promise<readonly KubeObject[]> {
    const { connection } = this.#cluster;
    const page = (query: Readonly<Record<string, string>>) =>
      connection.get<List<KubeObject>>({ path: this.#path, query, signal });
    return (await listAll(page, labelSelector === undefined ? {} : { labelSelector })).items;
  }
}

const FOREIGN: KubeObject = { metadata: { name: "", uid: "", resourceVersion: "" } };

function isOf(object: KubeObject, tag: Tag): boolean {
  return sameNode(aboutOf(object).tag, tag);
}
