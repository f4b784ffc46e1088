import { type ConfigOf, cloudConfig, Key, type OrderOf, type OwnOf, type Resources } from "@nodeyard/driver";
import { defined } from "@nodeyard/runtime";
import { containerAmounts, type PodContainer, quantityProblem } from "./amounts.ts";
import {
  type Amounts,
  type Kind,
  type LabelValues,
  type PoolValues,
  type Raw,
  tablesOf,
} from "./config-table.ts";
import { LABEL_VALUE, NAME_START } from "./grammar.ts";

/** Milliseconds until a pod for which there is room must be ready, as in Nodepool. */
export const POD_MS = 300_000;
/** Milliseconds of a launch beside the pod: the namespace before it and the token after it take up to half a minute. */
const BESIDE_MS = 60_000;

const configOf = (kind: Kind) =>
  cloudConfig(kind, tablesOf(kind), {
    provider({ at, name, own }) {
      // Every object has it as the label `nodepool_provider_name`, by which nodes are found.
      if (!LABEL_VALUE.holds(name))
        at.error("name", `is ${name}, which is a label of each object; write ${LABEL_VALUE.write}`);
      // The configuration has no key for the launch timeout of these drivers.
      return { launchTimeoutMs: own.roomMs + POD_MS + BESIDE_MS, bootTimeoutMs: 60_000, own };
    },
    pool: (pool, { own: provider }) => ({
      limits: {
        ...provider.maxResources,
        ...pool.maxResources,
        // A pool's own limit counts even if it is higher than the provider's, because the provider's is only a default for each pool.
        ...Key.limitsOver(pool, {
          ...{ cores: provider.cores, ram: provider.ram },
          instances: provider.mostNodes ?? provider.maxServers ?? Number.POSITIVE_INFINITY,
        }),
      },
      own: {},
    }),
    label: compileLabel,
  });

/** A provider of these drivers, as it is compiled from `nodepool.yaml`. */
export type KubeProviderConfig = ConfigOf<ReturnType<typeof configOf>>;

/** Label settings that only these drivers read. */
export type KubeLabelOwn = OwnOf<ReturnType<typeof configOf>, "label">;

/** A launch's order, as these drivers read it. */
export type KubeOrder = OrderOf<ReturnType<typeof configOf>>;

/** Keys of a kubernetes provider: schema, defaults and compiler (docs/reference/configuration.md). */
export const kubernetesConfig = configOf("kubernetes");
/** Keys of an openshift provider. */
export const openshiftConfig = configOf("openshift");
/** Keys of an openshiftpods provider. */
export const openshiftpodsConfig = configOf("openshiftpods");

const hasSpec = ({ spec }: LabelValues) => Object.keys(spec).length > 0;

function compileLabel(label: LabelValues, pool: PoolValues) {
  const { labels, dynamicLabels, annotations, pythonPath, shellType, type } = label;
  /** False: the node is a namespace or project without a pod. */
  const isPod = type === "pod";
  /** The pod's `spec` is used as the file has it. */
  const isVerbatim = hasSpec(label);
  const requests = { ...pool.defaultRequests, ...label.requests };
  const spec = isVerbatim ? label.spec : generatedSpec(label, pool, requests);
  if (isPod) checkPod(label, spec);
  const containers: readonly PodContainer[] = Array.isArray(spec.containers) ? spec.containers : [];
  /** Of one node. */
  const amounts: Resources = {
    ...{ cores: 0, ram: 0, ...containerAmounts(containers) },
    // It takes precedence, and a node is always one instance.
    ...(label.at.has("extra-resources") ? label.extraResources : pool.defaultLabelExtraResources),
    instances: 1,
  };
  /** Cores or memory are not named, so that a LimitRange of the project may add them. */
  const isUnsized = !isVerbatim && (requests.cpu === undefined || requests.memory === undefined);
  return {
    // There is no SSH server in a node, so there are no host keys and no port to try. 22 only fills the field. Zuul's executor reaches pods
    // by `kubectl`, as hosts of its inventory; the others are credentials for jobs.
    hostKeyChecking: false,
    connection: { username: null, pythonPath, shellType, type: isPod ? "kubectl" : type, port: 22 },
    image: null,
    own: { isPod, spec, isVerbatim, labels, dynamicLabels, annotations, amounts, isUnsized },
  };
}

/** Reports what the API server would refuse in every pod of the label. */
function checkPod(label: LabelValues, { containers }: Raw): void {
  const { at, name, image, volumes, volumeMounts } = label;
  if (!NAME_START.holds(name))
    at.error("name", `is ${name}, and the pod has the same name; write ${NAME_START.write}`);
  if (!hasSpec(label)) {
    if (image === null) at.error(undefined, `label ${name} is a pod without an image; add image or spec`);
    const namesIn = (list: readonly unknown[]) => list.map((item) => String((item as Raw | null)?.name));
    for (const volume of namesIn(volumeMounts).filter((one) => !namesIn(volumes).includes(one)))
      at.error("volume-mounts", `mount the volume ${volume}, which is not among the volumes; add it there`);
  }
  const key = hasSpec(label) ? "spec" : "name";
  if (!Array.isArray(containers) || containers.length === 0)
    return at.error(key, "has no containers; add at least one");
  for (const container of containers as readonly PodContainer[]) {
    const problem = quantityProblem(container);
    if (problem !== undefined) at.error(key, `container ${container.name ?? ""} ${problem}`);
  }
}

/** The `spec` of a pod with one container. Absent keys are left out, so that the cluster's own defaults apply. */
function generatedSpec(label: LabelValues, pool: PoolValues, requests: Amounts): Raw {
  const { gpu, gpuResource, imagePullSecrets } = label;
  // The API server refuses a GPU request that differs from its limit, so both get this amount.
  const gpus = gpu !== null && gpuResource !== null && { [gpuResource]: gpu.toFixed(2) };
  const resources = {
    requests: { ...requests, ...gpus },
    limits: { ...requests, ...pool.defaultLimits, ...label.limits, ...gpus },
  };
  const container = {
    name: label.name,
    image: label.image,
    imagePullPolicy: label.imagePull,
    // The pod has to run until it is deleted, whatever its image does by default. Jobs enter it by `kubectl exec`.
    command: ["/bin/sh", "-c"],
    args: ["while true; do sleep 30; done;"],
    env: label.env.map(({ name, value }) => ({ name, value })),
    ...(Object.keys(resources.limits).length > 0 && { resources }),
    ...(label.volumeMounts.length > 0 && { volumeMounts: label.volumeMounts }),
    ...(label.privileged !== null && { securityContext: { privileged: label.privileged } }),
  };
  return {
    containers: [container],
    // A container that restarts has lost the job's files, but would look like the same node.
    restartPolicy: "Never",
    // Jobs use the credential of the node's record. A token in the pod would be one more to steal.
    automountServiceAccountToken: false,
    // The container's shell ignores SIGTERM, so a longer grace period only delays the deletion.
    terminationGracePeriodSeconds: 1,
    ...defined({ imagePullSecrets }),
    ...(Object.keys(label.nodeSelector).length > 0 && { nodeSelector: label.nodeSelector }),
    ...(label.schedulerName !== null && { schedulerName: label.schedulerName }),
    ...(label.volumes.length > 0 && { volumes: label.volumes }),
  };
}
