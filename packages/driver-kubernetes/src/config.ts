import {
  amounts,
  commonOf,
  compileLabels,
  compilePools,
  DOCUMENTED,
  type DriverConfig,
  driverConfig,
  type Entry,
  entries,
  field,
  flag,
  integer,
  LIST,
  type LoadContext,
  launchKeys,
  loginKeys,
  mapping,
  NO_LIMIT,
  OURS,
  type PoolConfig,
  type ProviderConfig,
  poolKeys,
  priceKeys,
  type Reader,
  type Resources,
  type Rule,
  seconds,
  section,
  type Table,
  text,
  type Values,
  YamlFloat,
} from "@nodeyard/driver";
import { z } from "zod";
import { containerAmounts } from "./amounts.ts";
import type { PodContainer } from "./client/index.ts";

/**
 * Keys of kubernetes, openshift and openshiftpods, which have most of them in common (docs/contract/config.md, "Providers and drivers").
 */

type Raw = Readonly<Record<string, unknown>>;

/** A list that goes into the pod unchanged. The validator refuses any other type (LIST), so a value that is no list is read as empty. */
const list = (description: string) =>
  field(description, {}, LIST, (at, key) =>
    Array.isArray(at.raw[key]) ? (plain(at.raw[key]) as readonly unknown[]) : [],
  );
/** A mapping that goes into the pod unchanged, with its floats as JSON numbers. */
const object = (description: string) => mapping(description).map((raw) => plain(raw ?? {}) as Raw);

const limits = {
  "max-cores": integer("Cores at once.", NO_LIMIT).as("cores"),
  "max-ram": integer("Memory at once.", { ...NO_LIMIT, unit: "MiB" }).as("ram"),
};

// Nodes of these drivers have no login user: clients reach them through the API server.
const { "python-path": pythonPath, "shell-type": shellType } = loginKeys;

/** Keys that are allowed together with `spec`. */
const objectTable = {
  name: text("A top-level label.", { needed: true }),
  labels: object("Labels of the object."),
  "dynamic-labels": object("The same, from templates such as `{request.tenant_name}`."),
  annotations: object("Annotations of the pod."),
  spec: object("The pod as it is; not together with keys that describe one."),
};

/** Keys from which `generatedSpec` makes a pod with one container. They are not allowed beside `spec` (SPEC_ALONE). */
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
    (at, key) => (at.has(key) ? at.number(key, 0) : null),
  ),
  "gpu-resource": text("What the cluster calls GPUs."),
  env: entries(
    section({
      name: text("Name.", { needed: "validator", default: "" }),
      value: text("Value.", { needed: "validator", default: "" }),
    }),
    "Environment of the container.",
  ),
  "node-selector": object("Nodes of the cluster."),
  "scheduler-name": text("Scheduler of the cluster."),
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

const pullSecrets = { "image-pull-secrets": list("Secrets for the registry.") };
const type = (description: string) => ({ type: text(description, { needed: true }) });

/** Keys of a pool. Its `default-label-*` count for labels that do not set the key themselves; an explicit 0 of a label is kept. */
const poolTable = {
  ...poolKeys(limits),
  name: text("Start of the names of namespaces; the project, for openshiftpods.", {
    needed: true,
  }).check(dnsStart),
  "max-resources": amounts("Limits of resources by name, over the provider's."),
  "default-label-cpu": integer("Cores, where a label names none."),
  "default-label-memory": integer("Memory, where a label names none.", { unit: "MiB" }),
  "default-label-storage": integer("Storage, where a label names none.", { unit: "MB" }),
  "default-label-cpu-limit": integer("Cores at most, where a label names none."),
  "default-label-memory-limit": integer("Memory at most, where a label names none.", { unit: "MiB" }),
  "default-label-storage-limit": integer("Storage at most, where a label names none.", { unit: "MB" }),
  "default-label-extra-resources": amounts("What else pods count for, where a label says nothing.").differs(
    "is honoured; in Nodepool it has no effect.",
  ),
};

const providerTable = {
  "launch-retries": launchKeys({})["launch-retries"],
  ...priceKeys,
  "token-lifetime": seconds(
    "How long a node's token works; a ready node gets a new one before it is handed out. 0: a token without end, from a secret, as in Nodepool.",
    { default: 86_400 },
  )
    .as("tokenMs")
    .accepted(OURS),
  ...limits,
  "max-resources": amounts("Limits of resources by name."),
};

/** The table of one driver: the shared keys, the driver's own keys of a provider and of a label, and rules for each label. */
function table<P extends Table, L extends Table>(own: P, label: L, ...rules: readonly Rule[]) {
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

const needsContext = { context: text("Context of the kube config.", { needed: true }) };
/** A limit that a provider sets for each of its pools, not for their sum (`compile`). */
const ofEachPool = (description: string) => integer(description, { default: null, shown: "no limit" });

const kubernetesTable = table(
  {
    context: text("Context of the kube config.", { shown: "the current one, or the pod's own credentials" }),
    "max-servers": ofEachPool("Nodes at once, in each pool that sets no limit.").differs(
      "is the limit of pools that set none; in Nodepool it has no effect.",
    ),
  },
  type("`namespace`, or anything else for a pod."),
  SPEC_ALONE,
);

const openshiftTable = table(
  {
    ...needsContext,
    "max-servers": ofEachPool("Projects at once, in each pool that sets no limit.").accepted(DOCUMENTED),
    "max-projects": ofEachPool("Projects at once, in each pool that sets no limit."),
  },
  { ...type("`pod`, or anything else for a project."), ...pullSecrets },
  SPEC_ALONE,
);

const openshiftpodsTable = table(
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

/** Provider settings that only these drivers read. */
export interface KubeProviderOwn {
  /** Context of the kubeconfig; null: its current context, or the pod's own service account (`resolveAccess`). */
  readonly context: string | null;
  /** Lifetime of a job's token, milliseconds. 0: the token of a secret, which does not expire. */
  readonly tokenMs: number;
}

/** Pool settings that only these drivers read. */
export interface KubePoolOwn {
  /** Labels without an amount of cores or memory: a LimitRange of the project may add one. */
  readonly unsized: ReadonlySet<string>;
}

/** Label settings that only these drivers read. */
export interface KubeLabelOwn {
  /** False: the node is a namespace or project without a pod. */
  readonly isPod: boolean;
  /** The pod's `spec`; `isVerbatim`: it is used as the file has it. */
  readonly spec: Raw;
  readonly isVerbatim: boolean;
  readonly labels: Raw;
  readonly dynamicLabels: Raw;
  readonly annotations: Raw;
  /** Amounts of one node. */
  readonly amounts: Resources;
}

/** A provider of these drivers, as it is compiled from `nodepool.yaml`. */
export type KubeProviderConfig = ProviderConfig<KubeProviderOwn, KubePoolOwn, KubeLabelOwn>;

/** A label as the table reads it. `type` and `imagePullSecrets` are not in every driver's table. */
type LabelValues = Entry<
  Values<typeof objectTable> &
    Values<typeof podTable> & {
      readonly type?: string | null;
      readonly imagePullSecrets?: readonly unknown[];
    }
>;
type PoolValues = Entry<Values<typeof poolTable> & { readonly labels: readonly LabelValues[] }>;
/** A provider as the tables read it: the union of the three, of which each driver has a part. */
interface ProviderValues extends Omit<Values<typeof providerTable>, "launchAttempts"> {
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

/** Milliseconds until a pod must be ready, as in Nodepool. The namespace and token before it take up to half a minute. */
export const POD_MS = 300_000;
/** Time limit of a whole launch, milliseconds. */
const LAUNCH_MS = POD_MS + 60_000;

type Kind = "kubernetes" | "openshift" | "openshiftpods";

/** Makes the compiled provider. `kind` decides which labels are pods; everything else is alike for the three drivers. */
function compile(kind: Kind, provider: Entry<ProviderValues>, context: LoadContext): KubeProviderConfig {
  const { name, maxServers, maxProjects, maxPods } = provider;
  const problem = labelValueProblem(name);
  if (problem !== undefined) provider.at.error("name", problem);
  const most = maxProjects ?? maxPods ?? maxServers ?? Number.POSITIVE_INFINITY;
  return {
    // The configuration has no key for the launch timeout of these drivers.
    ...commonOf({ ...provider, launchTimeoutMs: LAUNCH_MS, bootTimeoutMs: 60_000 }),
    pools: compilePools(
      provider,
      (pool): Pick<PoolConfig<KubePoolOwn, KubeLabelOwn>, "labels" | "own" | "limits"> => ({
        limits: {
          ...provider.maxResources,
          ...pool.maxResources,
          // A pool's own limit counts even if it is higher than the provider's, because the provider's is only a default for each pool.
          instances: pool.at.has("max-servers") ? pool.limits.instances : most,
          cores: pool.at.has("max-cores") ? pool.limits.cores : provider.cores,
          ram: pool.at.has("max-ram") ? pool.limits.ram : provider.ram,
        },
        own: {
          unsized: new Set(
            pool.labels.flatMap((label) => {
              const { cpu, memory } = requestsOf(label, pool);
              const isSized = (cpu !== null && memory !== null) || Object.keys(label.spec).length > 0;
              return isSized ? [] : label.name;
            }),
          ),
        },
        labels: compileLabels(pool, context, (label) => {
          if (kind === "openshiftpods" || label.type !== "namespace") checkPodName(label);
          return {
            // There is no SSH server in a node, so there are no host keys and no port to try. 22 only fills the field.
            hostKeyChecking: false,
            connection: {
              username: null,
              pythonPath: label.pythonPath,
              shellType: label.shellType,
              type: connectionType(kind, label),
              port: 22,
            },
            image: null,
            own: compileLabel(kind, label, pool),
          };
        }),
      }),
    ),
    own: { context: provider.context, tokenMs: Math.max(0, provider.tokenMs) },
  };
}

/** Whether the label's node is a pod. An unknown `type` is a pod for `kubernetes` and a project for `openshift`, as in Nodepool. */
function isPod(kind: Kind, { type: word }: LabelValues): boolean {
  if (kind === "openshiftpods") return true;
  return kind === "openshift" ? word === "pod" : word !== "namespace";
}

/**
 * Zuul's word for how its executor reaches the node. Only `kubectl` nodes are hosts of its inventory; the others are credentials
 * for jobs.
 */
function connectionType(kind: Kind, label: LabelValues): string {
  if (isPod(kind, label)) return "kubectl";
  return kind === "openshift" ? "project" : "namespace";
}

function compileLabel(kind: Kind, label: LabelValues, pool: PoolValues): KubeLabelOwn {
  const isVerbatim = Object.keys(label.spec).length > 0;
  const requests = requestsOf(label, pool);
  return {
    isPod: isPod(kind, label),
    spec: isVerbatim ? label.spec : generatedSpec(kind, label, pool),
    isVerbatim,
    labels: label.labels,
    dynamicLabels: label.dynamicLabels,
    annotations: label.annotations,
    amounts: {
      cores: requests.cpu ?? 0,
      ram: requests.memory ?? 0,
      ...(requests.storage === null ? {} : { "ephemeral-storage": requests.storage }),
      ...(label.gpu === null || label.gpuResource === null ? {} : { [label.gpuResource]: label.gpu }),
      // A verbatim pod counts with what its containers request. `extra-resources` takes precedence, and a node is always one instance.
      ...(isVerbatim ? containerAmounts((label.spec.containers ?? []) as readonly PodContainer[]) : {}),
      ...(label.at.has("extra-resources") ? label.extraResources : pool.defaultLabelExtraResources),
      instances: 1,
    },
  };
}

/** Amounts that the pod requests, in the file's units: cores, MiB, MB. Null: neither the label nor the pool names one. */
function requestsOf(label: LabelValues, pool: PoolValues) {
  return {
    cpu: label.cpu ?? pool.defaultLabelCpu,
    memory: label.memory ?? pool.defaultLabelMemory,
    storage: label.storage ?? pool.defaultLabelStorage,
  };
}

/** The label's limit, otherwise the pool's, otherwise the request. */
function limitsOf(label: LabelValues, pool: PoolValues) {
  const requests = requestsOf(label, pool);
  return {
    cpu: label.cpuLimit ?? pool.defaultLabelCpuLimit ?? requests.cpu,
    memory: label.memoryLimit ?? pool.defaultLabelMemoryLimit ?? requests.memory,
    storage: label.storageLimit ?? pool.defaultLabelStorageLimit ?? requests.storage,
  };
}

/**
 * The `spec` of a pod with one container, from the label's keys and the pool's defaults. Absent keys are left out, so that the
 * cluster's own defaults apply.
 */
function generatedSpec(kind: Kind, label: LabelValues, pool: PoolValues): Raw {
  // The API server refuses a GPU request that differs from its limit, so both get this amount.
  const gpu =
    label.gpu === null || label.gpuResource === null ? {} : { [label.gpuResource]: label.gpu.toFixed(2) };
  const quantities = ({ cpu, memory, storage }: ReturnType<typeof requestsOf>) => ({
    ...(cpu === null ? {} : { cpu: String(cpu) }),
    ...(memory === null ? {} : { memory: `${memory}Mi` }),
    ...(storage === null ? {} : { "ephemeral-storage": `${storage}M` }),
    ...gpu,
  });
  const resources = {
    requests: quantities(requestsOf(label, pool)),
    limits: quantities(limitsOf(label, pool)),
  };
  const filled = Object.entries(resources).filter(([, amount]) => Object.keys(amount).length > 0);
  const container = {
    name: label.name,
    image: label.image,
    imagePullPolicy: label.imagePull,
    // The pod has to run until it is deleted, whatever its image does by default. Jobs enter it by `kubectl exec`.
    command: ["/bin/sh", "-c"],
    args: ["while true; do sleep 30; done;"],
    env: label.env.map(({ name, value }) => ({ name, value })),
    ...(filled.length > 0 ? { resources: Object.fromEntries(filled) } : {}),
    ...(label.volumeMounts.length > 0 ? { volumeMounts: label.volumeMounts } : {}),
    ...(label.privileged === null ? {} : { securityContext: { privileged: label.privileged } }),
  };
  return {
    containers: [container],
    // A container that restarts has lost the job's files, but would look like the same node.
    restartPolicy: "Never",
    // Jobs use the credential of the node's record. A token in the pod would be one more to steal.
    automountServiceAccountToken: false,
    // The container's shell ignores SIGTERM, so a longer grace period only delays the deletion.
    terminationGracePeriodSeconds: 1,
    ...(kind === "kubernetes" ? {} : { imagePullSecrets: label.imagePullSecrets ?? [] }),
    ...(Object.keys(label.nodeSelector).length > 0 ? { nodeSelector: label.nodeSelector } : {}),
    ...(label.schedulerName === null ? {} : { schedulerName: label.schedulerName }),
    ...(label.volumes.length > 0 ? { volumes: label.volumes } : {}),
  };
}

/** Names of namespaces and pods (RFC 1123, "DNS label"). */
const DNS_LABEL = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;
/** Values of labels (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/, "Syntax and character set"). */
const LABEL_VALUE = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
/** Characters left of the 63 of a DNS label after a dash, ten digits and the mark (`markOf`). */
const LONGEST_START = 40;

/** Problem of a pool's name, as the end of a sentence: it begins the names of namespaces, or is a project's. */
function dnsStart(name: string): string | undefined {
  if (DNS_LABEL.test(name) && name.length <= LONGEST_START) return undefined;
  return `is ${name}, of which the names of namespaces begin; write at most ${LONGEST_START} lower-case letters, digits and dashes`;
}

/** Problem of a provider's name: every object has it as the label `nodepool_provider_name`, by which nodes are found. */
function labelValueProblem(name: string): string | undefined {
  if (LABEL_VALUE.test(name)) return undefined;
  return `is ${name}, which cannot be the value of a label in the cluster; write letters, digits, dots, dashes and underscores`;
}

/**
 * Reports a label whose name cannot be that of its pod. Without this check every launch of the label would be refused by the API server.
 */
function checkPodName({ name, at }: { readonly name: string; readonly at: Reader }): void {
  if (!DNS_LABEL.test(name) || name.length > LONGEST_START)
    at.error(
      "name",
      `is ${name}, and the pod has the same name; write at most ${LONGEST_START} lower-case letters, digits and dashes`,
    );
}

/** The file's values as JSON: floats become numbers, however they are written. */
function plain(value: unknown): unknown {
  if (value instanceof YamlFloat) return value.value;
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}

/** The casts: the three tables differ in a few keys, and `compile` reads their union. */
const configOf = (kind: Kind, keys: ReturnType<typeof table>): DriverConfig<KubeProviderConfig> =>
  driverConfig(kind, keys, (provider, context) =>
    compile(kind, provider as unknown as Entry<ProviderValues>, context),
  );

/** Keys of a kubernetes provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const kubernetesConfig = configOf("kubernetes", kubernetesTable as never);
/** Keys of an openshift provider. */
export const openshiftConfig = configOf("openshift", openshiftTable as never);
/** Keys of an openshiftpods provider. */
export const openshiftpodsConfig = configOf("openshiftpods", openshiftpodsTable as never);
