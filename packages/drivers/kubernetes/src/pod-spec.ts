import type { LabelValues, PoolValues, Raw } from "./config-table.ts";

/** The drivers by name. They differ in the object that contains a node and in a few keys of their tables. */
export type Kind = "kubernetes" | "openshift" | "openshiftpods";

/** Amounts that the pod requests, in the file's units: cores, MiB, MB. Null: neither the label nor the pool names one. */
export function requestsOf(label: LabelValues, pool: PoolValues) {
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
export function generatedSpec(kind: Kind, label: LabelValues, pool: PoolValues): Raw {
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
