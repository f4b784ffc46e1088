import {
  type About,
  amounts,
  DOCUMENTED,
  type Entry,
  entries,
  FROM_0,
  field,
  flag,
  integer,
  LIMIT,
  LIST,
  launchKeys,
  loginKeys,
  mapping,
  NOT_EMPTY,
  OURS,
  poolKeys,
  priceKeys,
  type Rule,
  seconds,
  section,
  type Table,
  TEMPLATES,
  text,
  type Values,
  YamlFloat,
} from "@nodeyard/driver";
import { z } from "zod";
import * as is from "./grammar.ts";

/**
 * Keys of kubernetes, openshift and openshiftpods, which have most of them in common (docs/contract/config.md, "Providers and drivers").
 */

/** A mapping of the file whose contents are not looked at. */
export type Raw = Readonly<Record<string, unknown>>;

/** A list that goes into the pod unchanged. The validator refuses any other type (LIST), so a value that is no list is read as empty. */
const list = (description: string, about: About = {}) =>
  field(description, about, LIST, (at, key) =>
    Array.isArray(at.raw[key]) ? (plain(at.raw[key]) as readonly unknown[]) : [],
  );
/** A mapping that goes into the pod unchanged, with its floats as JSON numbers. */
const object = (description: string, about: About = {}) =>
  mapping(description, about).map((raw) => plain(raw ?? {}) as Raw);
const LABELS = { keys: is.QUALIFIED, like: is.EMPTY_OR_LABEL_VALUE };

/** A request of 0 is taken; the server refuses a negative amount. */
const AMOUNT = { like: FROM_0 };

const limits = {
  "max-cores": integer("Cores at once.", LIMIT).as("cores"),
  "max-ram": integer("Memory at once.", { ...LIMIT, unit: "MiB" }).as("ram"),
};

// Nodes of these drivers have no login user: clients reach them through the API server.
const { "python-path": pythonPath, "shell-type": shellType } = loginKeys;

/** Keys that are allowed together with `spec`. */
const objectTable = {
  name: text("A top-level label; every object has it as a label.", { needed: true, like: is.LABEL_VALUE }),
  labels: object("Labels of the object.", LABELS),
  "dynamic-labels": object("The same, from templates such as `{request.tenant_name}`.", {
    keys: is.QUALIFIED,
    ...TEMPLATES,
  }),
  annotations: object("Annotations of the pod.", { keys: is.QUALIFIED }),
  spec: object("The pod as it is; not together with keys that describe one."),
};

/** Keys from which `generatedSpec` makes a pod with one container. They are not allowed beside `spec` (SPEC_ALONE). */
const podTable = {
  image: text("Image of the container.", { like: is.IMAGE }),
  "image-pull": text("When it is pulled.", { default: "IfNotPresent", like: is.IMAGE_PULL }),
  "python-path": pythonPath,
  "shell-type": shellType,
  cpu: integer("Cores that are requested.", AMOUNT),
  memory: integer("Memory that is requested.", { unit: "MiB", ...AMOUNT }),
  storage: integer("Storage that is requested.", { unit: "MB", ...AMOUNT }),
  "cpu-limit": integer("Cores at most.", AMOUNT),
  "memory-limit": integer("Memory at most.", { unit: "MiB", ...AMOUNT }),
  "storage-limit": integer("Storage at most.", { unit: "MB", ...AMOUNT }),
  gpu: field(
    "GPUs; needs `gpu-resource`.",
    AMOUNT,
    z.instanceof(YamlFloat, { error: "must be a number with a decimal point, as in 1.0" }),
    (at, key) => (at.has(key) ? at.number(key, 0) : null),
  ),
  "gpu-resource": text("What the cluster calls GPUs.", { like: is.QUALIFIED }),
  env: entries(
    section({
      name: text("Name.", { needed: "validator", default: "", like: is.ENV_NAME }),
      value: text("Value.", { needed: "validator", default: "" }),
    }),
    "Environment of the container.",
  ),
  "node-selector": object("Nodes of the cluster.", LABELS),
  "scheduler-name": text("Scheduler of the cluster.", { like: is.SUBDOMAIN }),
  privileged: flag("A privileged container."),
  volumes: list("Volumes of the pod."),
  "volume-mounts": list("Where they are in the container."),
  "extra-resources": amounts("What else the pod counts for."),
};

/** A verbatim `spec` is used as it is, so keys that describe a pod would have no effect on it. The validator reports them. */
const SPEC_ALONE: Rule = [
  (value) =>
    value.spec === undefined || Object.keys(value).every((key) => key in objectTable || key === "type"),
  "has spec and other keys; keep, beside spec, only type, name, labels, dynamic-labels, annotations",
];

const pullSecrets = {
  "image-pull-secrets": list("Secrets for the registry, each with its `name`.", { like: is.SECRET }),
};
/** Any other word counts as the second one, as in Nodepool. */
const type = (first: string, second: string) => ({
  type: text(`\`${first}\` or \`${second}\`.`, {
    needed: true,
    like: is.typeOf(first, second),
    instead: `counts as ${second}`,
  }),
});

/** Keys of a pool. Its `default-label-*` count for labels that do not set the key themselves; an explicit 0 of a label is kept. */
const poolTable = {
  ...poolKeys(limits),
  name: text("Start of the names of namespaces; the project, for openshiftpods.", {
    needed: true,
    like: is.NAME_START,
  }),
  "max-resources": amounts("Limits of resources by name, over the provider's."),
  "default-label-cpu": integer("Cores, where a label names none.", AMOUNT),
  "default-label-memory": integer("Memory, where a label names none.", { unit: "MiB", ...AMOUNT }),
  "default-label-storage": integer("Storage, where a label names none.", { unit: "MB", ...AMOUNT }),
  "default-label-cpu-limit": integer("Cores at most, where a label names none.", AMOUNT),
  "default-label-memory-limit": integer("Memory at most, where a label names none.", {
    unit: "MiB",
    ...AMOUNT,
  }),
  "default-label-storage-limit": integer("Storage at most, where a label names none.", {
    unit: "MB",
    ...AMOUNT,
  }),
  "default-label-extra-resources": amounts("What else pods count for, where a label says nothing.").differs(
    "is honoured; in Nodepool it has no effect.",
  ),
};

const providerTable = {
  "launch-retries": launchKeys({})["launch-retries"],
  ...priceKeys,
  "token-lifetime": seconds(
    "How long a node's token works; a ready node gets a new one before it is handed out. 0: a token without end, from a secret, as in Nodepool.",
    { default: 86_400, like: is.TOKEN_SECONDS },
  )
    .as("tokenMs")
    .accepted(OURS),
  "schedule-timeout": seconds(
    "How long the cluster's scheduler may refuse a pod before its launch ends for lack of capacity: an autoscaler or a new disk may come late.",
    { default: 300, like: FROM_0 },
  )
    .as("roomMs")
    .accepted(OURS),
  ...limits,
  "max-resources": amounts("Limits of resources by name."),
};

/** The table of one driver: the shared keys, the driver's own keys of a provider and of a label, and rules for each label. */
export function table<P extends Table, L extends Table>(own: P, label: L, ...rules: readonly Rule[]) {
  const labels = section({ ...objectTable, ...podTable, ...label }, ...rules);
  const pools = section({
    ...poolTable,
    labels: entries(labels, "What the pool offers.", { needed: "validator" }),
  });
  return {
    ...providerTable,
    ...own,
    pools: entries(pools, "What the provider offers, in pools.", { needed: "validator" }),
  };
}

const needsContext = { context: text("Context of the kube config.", { needed: true, like: NOT_EMPTY }) };
/** A limit that a provider sets for each of its pools, not for their sum (`compile`). */
const ofEachPool = (description: string) => integer(description, { default: null, shown: "no limit" });

export const kubernetesTable = table(
  {
    context: text("Context of the kube config.", {
      shown: "the current one, or the pod's own credentials",
      like: NOT_EMPTY,
    }),
    "max-servers": ofEachPool("Nodes at once, in each pool that sets no limit.").differs(
      "is the limit of pools that set none; in Nodepool it has no effect.",
    ),
  },
  type("namespace", "pod"),
  SPEC_ALONE,
);

export const openshiftTable = table(
  {
    ...needsContext,
    "max-servers": ofEachPool("Projects at once, in each pool that sets no limit.").accepted(DOCUMENTED),
    "max-projects": ofEachPool("Projects at once, in each pool that sets no limit."),
  },
  { ...type("pod", "project"), ...pullSecrets },
  SPEC_ALONE,
);

export const openshiftpodsTable = table(
  {
    ...needsContext,
    "max-servers": ofEachPool("Pods at once, in each pool that sets no limit.").accepted(DOCUMENTED),
    "max-pods": ofEachPool("Pods at once, in each pool that sets no limit.").differs(
      "is the limit of pools that set none; in Nodepool it has no effect.",
    ),
  },
  { ...pullSecrets, type: text("Always a pod.", { deprecated: true }).accepted(DOCUMENTED) },
  SPEC_ALONE,
  [({ image, spec }) => image !== undefined || spec !== undefined, "has no image; add image or spec"],
);

/** A label as the table reads it. `type` and `imagePullSecrets` are not in every driver's table. */
export type LabelValues = Entry<
  Values<typeof objectTable> &
    Values<typeof podTable> & {
      readonly type?: string | null;
      readonly imagePullSecrets?: readonly unknown[];
    }
>;
/** A pool as the table reads it. */
export type PoolValues = Entry<Values<typeof poolTable> & { readonly labels: readonly LabelValues[] }>;
/** A provider as the tables read it: the union of the three, of which each driver has a part. */
export interface ProviderValues extends Omit<Values<typeof providerTable>, "launchAttempts"> {
  readonly name: string;
  readonly driver: string;
  readonly launchAttempts: number;
  readonly maxConcurrency: number;
  readonly priority: number;
  readonly context: string | null;
  readonly pools: readonly PoolValues[];
  readonly maxServers: number | null;
  readonly maxProjects?: number | null;
  readonly maxPods?: number | null;
}

/** The file's values as JSON: floats become numbers, however they are written. */
function plain(value: unknown): unknown {
  if (value instanceof YamlFloat) return value.value;
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}
