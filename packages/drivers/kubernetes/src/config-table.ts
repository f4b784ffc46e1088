import {
  type About,
  type Entry,
  type Field,
  Is,
  Key,
  LIST,
  present,
  type Rule,
  TEMPLATES,
  type Values,
  YamlFloat,
} from "@nodeyard/driver";
import { z } from "zod";
import * as kube from "./grammar.ts";

/** The drivers by name, which have most keys in common (docs/contract/config.md, "Providers and drivers"). */
export type Kind = "kubernetes" | "openshift" | "openshiftpods";

/** A mapping of the file whose contents are not looked at. */
export type Raw = Readonly<Record<string, unknown>>;

/** A list that goes into the pod unchanged. The validator refuses any other type (LIST), so a value that is no list is read as empty. */
const list = (description: string, about: About = {}) =>
  Key.field(description, about, LIST, (at, key): readonly unknown[] =>
    Array.isArray(at.raw[key]) ? at.raw[key] : [],
  );
/** A mapping that goes into the pod unchanged. */
const object = (description: string, about: About = {}) =>
  Key.mapping(description, about).map((raw): Raw => raw ?? {});
const LABELS = { keys: kube.QUALIFIED, like: kube.EMPTY_OR_LABEL_VALUE };

/** Amounts of a container by resource, as quantities of Kubernetes: "2", "512Mi". */
export type Amounts = Readonly<Record<string, string>>;

/** A request of 0 is taken; the server refuses a negative amount. */
const AMOUNT = { like: Is.FROM_0 };
/** The keys of such amounts, with `start` and `end` around the amount's name. */
const amountKeys = (start: string, end: string, meaning: string) => {
  const key = (what: string, suffix: string, about: About = {}) =>
    Key.integer(`${what}${meaning}.`, { ...AMOUNT, ...about }).map((amount) =>
      amount === null ? null : `${amount}${suffix}`,
    );
  return Key.group({
    [`${start}cpu${end}`]: key("Cores", "").as("cpu"),
    [`${start}memory${end}`]: key("Memory", "Mi", { unit: "MiB" }).as("memory"),
    [`${start}storage${end}`]: key("Storage", "M", { unit: "MB" }).as("ephemeral-storage"),
  }).map((amounts): Amounts => present(amounts));
};

// Nodes of these drivers have no login user: clients reach them through the API server.
const { "python-path": pythonPath, "shell-type": shellType } = Key.loginKeys;

/** Keys that are allowed together with `spec`. */
const objectTable = {
  name: Key.text("A top-level label; every object has it as a label.", {
    needed: true,
    like: kube.LABEL_VALUE,
  }),
  labels: object("Labels of the object.", LABELS),
  "dynamic-labels": object("The same, from templates such as `{request.tenant_name}`.", {
    keys: kube.QUALIFIED,
    ...TEMPLATES,
  }),
  annotations: object("Annotations of the pod.", { keys: kube.QUALIFIED }),
  spec: object("The pod as it is; not together with keys that describe one."),
};

/** Keys from which `generatedSpec` makes a pod with one container. They are not allowed beside `spec` (SPEC_ALONE). */
const podTable = {
  image: Key.text("Image of the container.", { like: kube.IMAGE }),
  "image-pull": Key.choice("When it is pulled: `IfNotPresent`, `Always` or `Never`.", [
    "IfNotPresent",
    "Always",
    "Never",
  ]),
  "python-path": pythonPath,
  "shell-type": shellType,
  requests: amountKeys("", "", " that the container requests"),
  limits: amountKeys("", "-limit", " at most"),
  gpu: Key.field(
    "GPUs; needs `gpu-resource`.",
    AMOUNT,
    z.instanceof(YamlFloat, { error: "must be a number with a decimal point, as in 1.0" }),
    (at, key) => (at.has(key) ? at.number(key, 0) : null),
  ),
  "gpu-resource": Key.text("What the cluster calls GPUs.", { like: kube.QUALIFIED }),
  env: Key.entries(
    Key.section({
      name: Key.text("Name.", { needed: "validator", default: "", like: kube.ENV_NAME }),
      value: Key.text("Value.", { needed: "validator", default: "" }),
    }),
    "Environment of the container.",
  ),
  "node-selector": object("Nodes of the cluster.", LABELS),
  "scheduler-name": Key.text("Scheduler of the cluster.", { like: kube.SUBDOMAIN }),
  privileged: Key.flag("A privileged container."),
  volumes: list("Volumes of the pod."),
  "volume-mounts": list("Where they are in the container."),
  "extra-resources": Key.amounts("What else the pod counts for."),
};
const pullSecrets = {
  "image-pull-secrets": list("Secrets for the registry, each with its `name`.", { like: kube.SECRET }),
};

/** A verbatim `spec` is used as it is, so keys that describe a pod would have no effect on it. The validator reports them. */
const SPEC_ALONE: Rule = [
  (value) =>
    value.spec === undefined || Object.keys(value).every((key) => key in objectTable || key === "type"),
  "has spec and other keys; keep, beside spec, only type, name, labels, dynamic-labels, annotations",
];
export type NodeType = "namespace" | "pod" | "project";
/** What a node is: any other word counts as the second one, as in Nodepool. */
const typeOf = (first: NodeType, second: NodeType) =>
  Key.text(`\`${first}\` or \`${second}\`.`, {
    needed: true,
    like: Is.among([first, second], `${first}s`, second.toUpperCase()),
    instead: `counts as ${second}`,
  }).map((word): NodeType => (word === first ? first : second));

/** What the drivers call their nodes, and what a label's `type` may say. */
const KINDS: Readonly<Record<Kind, readonly [nodes: string, type: Field<NodeType>]>> = {
  kubernetes: ["Nodes", typeOf("namespace", "pod")],
  openshift: ["Projects", typeOf("pod", "project")],
  openshiftpods: [
    "Pods",
    Key.text("Always a pod.", { deprecated: true })
      .accepted(Key.DOCUMENTED)
      .map(() => "pod"),
  ],
};

/** Limits that a provider sets for each of its pools, not for their sum. */
function mostKeys(kind: Kind) {
  const about = { default: null, shown: "no limit" };
  const most = Key.integer(`${KINDS[kind][0]} at once, in each pool that sets no limit.`, about);
  const ours = most.differs("is the limit of pools that set none; in Nodepool it has no effect.");
  return {
    "max-servers": kind === "kubernetes" ? ours : most.accepted(Key.DOCUMENTED),
    ...(kind === "openshift" && { "max-projects": most.as("mostNodes") }),
    ...(kind === "openshiftpods" && { "max-pods": ours.as("mostNodes") }),
  };
}

const pool = {
  limits: Key.limits(Key.sizeLimits),
  name: Key.text("Start of the names of namespaces; the project, for openshiftpods.", {
    needed: true,
    like: kube.NAME_START,
  }),
  "max-resources": Key.amounts("Limits of resources by name, over the provider's."),
  defaultRequests: amountKeys("default-label-", "", ", where a label names none"),
  defaultLimits: amountKeys("default-label-", "-limit", " at most, where a label names none"),
  "default-label-extra-resources": Key.amounts(
    "What else pods count for, where a label says nothing.",
  ).differs("is honoured; in Nodepool it has no effect."),
};

/** The keys of one driver's providers. What a driver does not have is undefined in its values. */
export function tablesOf(kind: Kind) {
  const isPlain = kind === "kubernetes";
  const label = {
    ...{ ...objectTable, ...podTable, type: KINDS[kind][1] },
    ...(isPlain ? {} : pullSecrets),
  } as typeof objectTable & typeof podTable & { type: Field<NodeType> } & Partial<typeof pullSecrets>;
  const labelRules =
    kind === "openshiftpods" ? [SPEC_ALONE, Key.atLeastOne("image", "image", "spec")] : [SPEC_ALONE];
  const provider = {
    "launch-retries": Key.launchKeys({})["launch-retries"],
    ...Key.priceKeys,
    ...Key.ours({
      "token-lifetime": Key.seconds(
        "How long a node's token works; a ready node gets a new one before it is handed out. 0: a token without end, from a secret, as in Nodepool.",
        { default: 86_400, like: kube.TOKEN_SECONDS },
      ).as("tokenMs"),
      "schedule-timeout": Key.seconds(
        "How long the cluster's scheduler may refuse a pod before its launch ends for lack of capacity: an autoscaler or a new disk may come late.",
        { default: 300, like: Is.FROM_0 },
      ).as("roomMs"),
    }),
    ...Key.sizeLimits,
    "max-resources": Key.amounts("Limits of resources by name."),
    context: Key.text("Context of the kube config.", {
      ...(isPlain ? { shown: "the current one, or the pod's own credentials" } : { needed: true }),
      like: Is.NOT_EMPTY,
    }) as Field<string | null>,
    ...mostKeys(kind),
  };
  return { provider, pool, label, labelRules, needed: "validator" } as const;
}

/** A pool and a label as they are read. */
export type PoolValues = Values<typeof pool>;
export type LabelValues = Entry<Values<ReturnType<typeof tablesOf>["label"]>>;
