import type { CreateOrder, LabelConfig } from "@nodeyard/driver";
import type { KubeObject, ObjectWatch } from "../client/index.ts";
import type { KubeLabelOwn } from "../config.ts";
import type { Site } from "../site.ts";
import { ABOUT, aboutText, labelsOf } from "./about.ts";
import { Owned } from "./owned.ts";

const NAMESPACES = "/api/v1/namespaces";
const PROJECT_API = "/apis/project.openshift.io/v1";

/** What `homesOf` makes. */
export type Homes = ReturnType<typeof homesOf>;

/**
 * Namespaces of `kubernetes` nodes and projects of `openshift` nodes. A project is a namespace that the server creates on
 * request. `watch` begins the watch that `close` ends; it rejects when the credential may not watch them.
 *
 * `cluster.watch` counts each call as a user. The first call of `watch` is kept, so that one `close` releases it.
 */
export function homesOf({ cluster, kind, log, clock }: Site) {
  const { connection } = cluster;
  const isProject = kind === "openshift";
  const path = isProject ? `${PROJECT_API}/projects` : NAMESPACES;
  // A ProjectRequest drops labels, so projects are identified by an annotation, and no selector finds them.
  const ours = isProject ? null : cluster.ours;
  let watching: ObjectWatch<KubeObject> | undefined;

  async function watch(signal: AbortSignal): Promise<ObjectWatch<KubeObject>> {
    watching ??= cluster.watch(path, ours ?? undefined);
    return watching.synced(signal);
  }

  async function make(order: CreateOrder, name: string, signal: AbortSignal): Promise<KubeObject> {
    const label = order.label as LabelConfig<KubeLabelOwn>;
    const metadata = { name, labels: labelsOf(order, log) };
    // The pod's name is stored with the namespace, so that `list` can tell a missing pod, also for a label that left the configuration.
    const about = aboutText(order.tag, label, label.own.isPod ? label.name : null);
    if (!isProject) {
      const body = { metadata: { ...metadata, annotations: { [ABOUT]: about } } };
      return connection.post({ path: NAMESPACES, body, signal });
    }
    const request = {
      apiVersion: "project.openshift.io/v1",
      kind: "ProjectRequest",
      metadata,
      description: about,
    };
    return connection.post({ path: `${PROJECT_API}/projectrequests`, body: request, signal });
  }

  function close(): void {
    if (watching !== undefined) cluster.release(watching as never);
    watching = undefined;
  }

  const collection = {
    connection,
    clock,
    path,
    namespace: "",
    what: "namespace",
    ours,
    watch,
    make,
  } as const;
  return { homes: new Owned<KubeObject>(collection), watch, close };
}
