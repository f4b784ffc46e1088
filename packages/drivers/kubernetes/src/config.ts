import {
  commonOf,
  compileLabels,
  compilePools,
  type DriverConfig,
  driverConfig,
  type Entry,
  type LoadContext,
  type PoolConfig,
  type ProviderConfig,
  type Reader,
  type Resources,
} from "@nodeyard/driver";
import { containerAmounts, quantityProblem } from "./amounts.ts";
import type { PodContainer } from "./client/index.ts";
import {
  kubernetesTable,
  type LabelValues,
  openshiftpodsTable,
  openshiftTable,
  type PoolValues,
  type ProviderValues,
  type Raw,
  type table,
} from "./config-table.ts";
import { LABEL_VALUE, NAME_START } from "./grammar.ts";
import { generatedSpec, type Kind, requestsOf } from "./pod-spec.ts";

/** Provider settings that only these drivers read. */
export interface KubeProviderOwn {
  /** Context of the kubeconfig; null: its current context, or the pod's own service account (`resolveAccess`). */
  readonly context: string | null;
  /** Lifetime of a job's token, milliseconds. 0: the token of a secret, which does not expire. */
  readonly tokenMs: number;
  /** How long the cluster's scheduler may refuse a pod, milliseconds. */
  readonly roomMs: number;
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

/** Milliseconds until a pod for which there is room must be ready, as in Nodepool. */
export const POD_MS = 300_000;
/** Milliseconds of a launch beside the pod: the namespace before it and the token after it take up to half a minute. */
const BESIDE_MS = 60_000;

/** Makes the compiled provider. `kind` decides which labels are pods; everything else is alike for the three drivers. */
function compile(kind: Kind, provider: Entry<ProviderValues>, context: LoadContext): KubeProviderConfig {
  const { name, maxServers, maxProjects, maxPods } = provider;
  const { roomMs } = provider;
  // Every object has it as the label `nodepool_provider_name`, by which nodes are found.
  if (!LABEL_VALUE.holds(name))
    provider.at.error("name", `is ${name}, which is a label of each object; write ${LABEL_VALUE.write}`);
  const most = maxProjects ?? maxPods ?? maxServers ?? Number.POSITIVE_INFINITY;
  return {
    // The configuration has no key for the launch timeout of these drivers.
    ...commonOf({ ...provider, launchTimeoutMs: roomMs + POD_MS + BESIDE_MS, bootTimeoutMs: 60_000 }),
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
    own: { context: provider.context, tokenMs: provider.tokenMs, roomMs },
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
  const spec = isVerbatim ? label.spec : generatedSpec(kind, label, pool);
  if (isPod(kind, label) && !isVerbatim) checkPod(label);
  if (isPod(kind, label)) checkContainers(spec, isVerbatim ? "spec" : "name", label.at);
  return {
    isPod: isPod(kind, label),
    spec,
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

/**
 * Reports a label whose name cannot be that of its pod. Without this check every launch of the label would be refused by the API server.
 */
function checkPodName({ name, at }: { readonly name: string; readonly at: Reader }): void {
  if (!NAME_START.holds(name))
    at.error("name", `is ${name}, and the pod has the same name; write ${NAME_START.write}`);
}

/** Reports containers that the API server would refuse in every pod of the label. */
function checkContainers({ containers }: Raw, key: string, at: Reader): void {
  const isList = Array.isArray(containers) && containers.length > 0;
  if (!isList) return at.error(key, "has no containers; add at least one");
  for (const container of containers as readonly PodContainer[]) {
    const problem = quantityProblem(container);
    if (problem !== undefined) at.error(key, `container ${container.name ?? ""} ${problem}`);
  }
}

/** Reports what the API server would refuse in every pod that is made of the label's keys. */
function checkPod({ at, name, image, volumes, volumeMounts }: LabelValues): void {
  if (image === null) at.error(undefined, `label ${name} is a pod without an image; add image or spec`);
  const namesIn = (list: readonly unknown[]) => list.map((item) => String((item as Raw | null)?.name));
  for (const volume of namesIn(volumeMounts).filter((one) => !namesIn(volumes).includes(one)))
    at.error("volume-mounts", `mount the volume ${volume}, which is not among the volumes; add it there`);
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
