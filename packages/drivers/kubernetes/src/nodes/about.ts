import {
  filledTemplates,
  hashOf,
  jsonIn,
  type Log,
  type Metadata,
  machineMetadata,
  type Tag,
  tagOf,
} from "@nodeyard/driver";
import { z } from "zod";
import type { Access, KubeObject } from "../client/index.ts";
import type { KubeOrder } from "../config.ts";
import type { Kind } from "../config-table.ts";
import { EMPTY_OR_LABEL_VALUE } from "../grammar.ts";
import { USER } from "./access.ts";

/** Facts about a node that the cluster stores with its object, as JSON in one annotation. Other users of the cluster may edit it. */
const FACTS = z.object({
  /** Use of the quota at creation: the label may have changed or left the configuration since. Empty when it is not known. */
  resources: z.record(z.string(), z.number()).catch({}),
  /** Name of the pod in the namespace; null when the namespace was made without one. */
  pod: z.string().nullable().catch(null),
});

/** Annotation of namespaces and pods. */
export const ABOUT = "nodeyard/node";
/** The only annotation that a ProjectRequest can set: OpenShift copies it to the project and drops labels. */
const DESCRIPTION = "openshift.io/description";

/** Value of the annotation. */
export function aboutText({ tag, label }: KubeOrder, pod: string | null): string {
  return JSON.stringify({ ...machineMetadata(tag), resources: label.own.amounts, pod });
}

/** Labels, with the annotation of objects that cannot have our labels (projects) or have lost them. */
export function metadataOf(object: KubeObject): Metadata {
  const { labels = {} } = object.metadata;
  return tagOf(labels) === null ? { ...(factsOf(object) as Metadata), ...labels } : labels;
}

/** What is stored with an object. */
export function aboutOf(object: KubeObject): z.infer<typeof FACTS> & { readonly tag: Tag | null } {
  return { ...FACTS.parse(factsOf(object)), tag: tagOf(metadataOf(object)) };
}

/** Empty for a description that a person wrote. */
function factsOf({ metadata: { annotations = {} } }: KubeObject) {
  return jsonIn(annotations[ABOUT] ?? annotations[DESCRIPTION] ?? "");
}

/**
 * Labels of all objects of a node: those of the file, those from templates, and the tag, which takes precedence. A template that fails, or
 * gives no valid value, for which the API server would refuse the whole object, is left out (docs/contract/config.md, "Templates").
 */
export function labelsOf({ label, tag, request }: KubeOrder, log: Log): Readonly<Record<string, string>> {
  const { labels, dynamicLabels } = label.own;
  const all = Object.fromEntries(Object.entries(labels).map(([key, value]) => [key, String(value)]));
  const omit = (key: string, problem: string) =>
    log.warn({ label: label.name, key }, `dynamic label ${key} is left out: it ${problem}`);
  for (const [key, text] of Object.entries(filledTemplates(dynamicLabels, request, omit)))
    if (EMPTY_OR_LABEL_VALUE.holds(text)) all[key] = text;
    else omit(key, `gives ${text}, which no label can be`);
  return { ...all, ...machineMetadata(tag), nodepool_node_label: label.name };
}

/** `connection_port` as Zuul's executor reads it (docs/contract/records.md, "Node"). `pod` null: a namespace. `token` null: only a certificate. */
export function portOf(
  kind: Kind,
  namespace: string,
  pod: string | null,
  { server, route: { ca, verify } }: Pick<Access, "server" | "route">,
  token: string | null,
): Readonly<Record<string, unknown>> {
  return {
    ...(kind === "kubernetes" && { name: namespace }),
    namespace,
    host: server,
    skiptls: !verify,
    token,
    user: USER,
    // Base64 of the PEM, as in a kubeconfig. Null: the system's authorities count. In a shared project Nodepool always writes this key.
    ...((kind === "openshiftpods" || (verify && ca !== null)) && {
      ca_crt: ca === null ? null : Buffer.from(ca).toString("base64"),
    }),
    ...(pod !== null && { pod }),
  };
}

/** A suffix for a name that is taken; no number, which Nodepool takes for a node id. Equal marks only end a launch, as tags are compared. */
export function markOf({ installation, provider }: Tag): string {
  return `n${hashOf([installation, provider]).slice(0, 8)}`;
}
