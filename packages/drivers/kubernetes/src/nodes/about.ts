import {
  type CreateOrder,
  filledTemplates,
  type LabelConfig,
  type Log,
  machineMetadata,
  type Resources,
  type Tag,
  tagOf,
} from "@nodeyard/driver";
import type { KubeObject } from "../client/index.ts";
import type { KubeLabelOwn } from "../config.ts";

/** Facts about a node that the cluster stores with its object, as JSON in one annotation. */
export interface About {
  /** Null when the object is not a node's, or its tag is incomplete. */
  readonly tag: Tag | null;
  /** Use of the quota at creation: the label may have changed or left the configuration since. Empty when it is not known. */
  readonly resources: Resources;
  /** Name of the pod in the namespace; null when the namespace was made without one. */
  readonly pod: string | null;
}

/** Annotation of namespaces and pods. */
export const ABOUT = "nodeyard/node";
/** The only annotation that a ProjectRequest can set: OpenShift copies it to the project and drops labels. */
export const DESCRIPTION = "openshift.io/description";

/** Value of the annotation. */
export function aboutText(tag: Tag, label: LabelConfig<KubeLabelOwn>, pod: string | null): string {
  return JSON.stringify({ ...machineMetadata(tag), resources: label.own.amounts, pod });
}

/** Reads labels, and the annotation of objects that cannot have our labels (projects). Text in another format gives no tag. */
export function aboutOf({ metadata }: KubeObject): About {
  const { labels = {}, annotations = {} } = metadata;
  const facts = parsed(annotations[ABOUT] ?? annotations[DESCRIPTION]);
  const { resources, pod } = facts;
  return {
    tag: tagOf(labels) ?? tagOf(facts),
    resources: isAmounts(resources) ? resources : {},
    pod: typeof pod === "string" ? pod : null,
  };
}

/** The fields of a text in JSON; empty for any other text, such as the description of a project that a person wrote. */
function parsed(text: string | undefined): Readonly<Record<string, unknown>> {
  if (text === undefined || !text.startsWith("{")) return {};
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return {};
  }
}

/** Checked, because other users of the cluster may edit annotations, and a text in a sum of amounts would break the quota. */
function isAmounts(value: unknown): value is Resources {
  return (
    typeof value === "object" &&
    value !== null &&
    Object.values(value).every((amount) => typeof amount === "number")
  );
}

/** The value of a label, which may be empty. */
const VALUE = /^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;

/**
 * Labels of all objects of a node: those of the file, those from templates, and the tag, which takes precedence. A template that
 * fails, or that gives no valid value, is logged and left out (docs/contract/config.md, "Templates"): the API server would refuse
 * the whole object.
 */
export function labelsOf({ label, tag, request }: CreateOrder, log: Log): Readonly<Record<string, string>> {
  const { labels, dynamicLabels } = label.own as KubeLabelOwn;
  const all: Record<string, string> = {};
  for (const [key, value] of Object.entries(labels)) all[key] = String(value);
  const omit = (key: string, problem: string) =>
    log.warn({ label: label.name, key }, `dynamic label ${key} is left out: it ${problem}`);
  for (const [key, text] of Object.entries(filledTemplates(dynamicLabels, request, omit)))
    if (VALUE.test(text)) all[key] = text;
    else omit(key, `gives ${text}, which no label can be`);
  return { ...all, ...machineMetadata(tag), nodepool_node_label: label.name };
}
