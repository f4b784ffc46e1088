import {
  amounts,
  DOCUMENTED,
  entries,
  field,
  flag,
  integer,
  LIST,
  launchKeys,
  loginKeys,
  mapping,
  NO_LIMIT,
  poolKeys,
  type Rule,
  section,
  type Table,
  text,
  YamlFloat,
} from "@nodeyard/driver";
import { z } from "zod";

/** Keys of kubernetes, openshift and openshiftpods, which differ in few. */

const list = (description: string) =>
  field(description, {}, LIST, (at, key) => (Array.isArray(at.raw[key]) ? at.raw[key] : []));

const { "python-path": pythonPath, "shell-type": shellType } = loginKeys;

const limits = {
  "max-cores": integer("Cores at once.", NO_LIMIT).as("cores"),
  "max-ram": integer("Memory at once.", { ...NO_LIMIT, unit: "MiB" }).as("ram"),
};

/** Keys that go with `spec`, too. */
const objectTable = {
  name: text("A top-level label.", { needed: true }),
  labels: mapping("Labels of the object."),
  "dynamic-labels": mapping("The same, from templates."),
  annotations: mapping("Annotations of the object."),
  spec: mapping("The pod as it is; not together with keys that describe one."),
};

const podTable = {
  image: text("Image of the container."),
  "image-pull": text("When it is pulled.", { default: "IfNotPresent" }),
  "python-path": pythonPath,
  "shell-type": shellType,
  cpu: integer("Cores that are requested."),
  memory: integer("Memory that is requested.", { unit: "MiB" }),
  storage: integer("Storage that is requested.", { unit: "MB" }),
  "cpu-limit": integer("Cores at most."),
  "memory-limit": integer("Memory at most.", { unit: "MiB" }),
  "storage-limit": integer("Storage at most.", { unit: "MB" }),
  gpu: field(
    "GPUs; needs `gpu-resource`.",
    {},
    z.instanceof(YamlFloat, { error: "must be a number with a decimal point, as in 1.0" }),
    (at, key) => at.number(key, 0),
  ),
  "gpu-resource": text("What the cluster calls GPUs."),
  env: entries(
    section({
      name: text("Name.", { needed: "validator" }),
      value: text("Value.", { needed: "validator" }),
    }),
    "Environment of the container.",
  ),
  "node-selector": mapping("Nodes of the cluster."),
  "scheduler-name": text("Scheduler of the cluster."),
  privileged: flag("A privileged container."),
  volumes: list("Volumes of the pod."),
  "volume-mounts": list("Where they are in the container."),
  "extra-resources": amounts("What else the pod counts for."),
};

const specAlone = (also: readonly string[]): Rule => [
  (value) =>
    value.spec === undefined || Object.keys(value).every((key) => key in objectTable || also.includes(key)),
  `has spec and other keys; keep, beside spec, only ${[...also, "name", "labels", "dynamic-labels", "annotations"].join(", ")}`,
];

const type = (description: string) => ({ type: text(description, { needed: true }) });
const pullSecrets = { "image-pull-secrets": list("Secrets for the registry.") };

const provider = (own: Table, label: Table, ...rules: readonly Rule[]) => ({
  "launch-retries": launchKeys({})["launch-retries"],
  ...limits,
  "max-resources": amounts("Limits of resources by name."),
  ...own,
  pools: entries(
    section({
      ...poolKeys(limits),
      name: text("Start of the names of namespaces; the project, for openshiftpods.", { needed: true }),
      "max-resources": amounts("Limits of resources by name, over the provider's."),
      "default-label-cpu": integer("Cores, where a label names none."),
      "default-label-memory": integer("Memory, where a label names none.", { unit: "MiB" }),
      "default-label-storage": integer("Storage, where a label names none.", { unit: "MB" }),
      "default-label-cpu-limit": integer("Cores at most, where a label names none."),
      "default-label-memory-limit": integer("Memory at most, where a label names none.", { unit: "MiB" }),
      "default-label-storage-limit": integer("Storage at most, where a label names none.", { unit: "MB" }),
      "default-label-extra-resources": amounts("Without effect.").unused(),
      labels: entries(section({ ...objectTable, ...podTable, ...label }, ...rules), "What the pool offers.", {
        needed: "validator",
      }),
    }),
    "What the provider offers, in pools.",
    { needed: "validator" },
  ),
});

/** Keys of a provider of driver `kubernetes`. */
export const kubernetes = provider(
  {
    context: text("Context of the kube config.", { shown: "the default" }),
    "max-servers": integer("Without effect: pools do not inherit it.", NO_LIMIT).unused(),
  },
  type("`namespace`, or anything else for a pod."),
  specAlone(["type"]),
);

const context = { context: text("Context of the kube config.", { needed: true }) };
const documentedLimit = {
  "max-servers": integer("Nodes at once, in each pool.", NO_LIMIT).accepted(DOCUMENTED),
};

/** Keys of a provider of driver `openshift`. */
export const openshift = provider(
  {
    ...context,
    ...documentedLimit,
    "max-projects": integer("Projects at once, in each pool.", NO_LIMIT),
  },
  { ...type("`pod`, or anything else for a project."), ...pullSecrets },
  specAlone(["type"]),
);

/** Keys of a provider of driver `openshiftpods`. */
export const openshiftpods = provider(
  {
    ...context,
    ...documentedLimit,
    "max-pods": integer("Without effect in Nodepool.", { deprecated: true }).unused(),
  },
  {
    ...pullSecrets,
    type: text("Always a pod.", { deprecated: true }).accepted(DOCUMENTED),
  },
  specAlone(["type"]),
  [({ image, spec }) => image !== undefined || spec !== undefined, "has no image; add image or spec"],
);
