import { DriverError, type DriverErrorKind, deadline, messageOf, type Tag } from "@nodeyard/driver";
import type { Connection, ObjectWatch, Pod } from "../client/index.ts";
import { POD_MS } from "../config.ts";
import type { Site } from "../site.ts";

/** The pod of a node, by its path in the API. */
interface PodPlace {
  readonly tag: Tag;
  readonly namespace: string;
  readonly name: string;
}

/** What of a provider's parts is used here; the scheduler's words while a pod waits for room are remarked on its node. */
type ReadySite = Pick<Site, "clock" | "remark"> & {
  readonly cluster: { readonly connection: Connection };
  readonly config: { readonly own: { readonly roomMs: number } };
};

/**
 * Resolves to the pod when the watch shows it ready. Rejects with a DriverError when it will not become ready:
 *
 * "capacity" when the scheduler refuses it for `roomMs`, with its last words; "configuration" when only a change of the label can help;
 * "transient" when another attempt may succeed; "not-found" when it was deleted; "timeout" when it has room and is not ready after POD_MS,
 * with its phase and its last two warnings. The caller's abort rejects with the signal's reason. The pod must be in the watch before the
 * call (`note`).
 */
export async function podReady(
  { cluster: { connection }, clock, config, remark }: ReadySite,
  watch: ObjectWatch<Pod>,
  place: PodPlace,
  signal: AbortSignal,
): Promise<Pod> {
  const { roomMs } = config.own;
  const late = () => new DriverError("timeout", `pod ${nameOf(place)} is not ready after ${POD_MS / 1000} s`);
  // A pod that was deleted is judged by its last state, which has the reason of an eviction.
  const judge = (wanted: (pod: Pod) => boolean) => (pod: Pod | undefined, last: Pod | undefined) => {
    const latest = pod ?? last;
    const failure = latest && failureOf(latest);
    if (failure !== undefined) throw new DriverError(failure.kind, `pod ${nameOf(place)}: ${failure.why}`);
    if (pod === undefined) throw new DriverError("not-found", `pod ${nameOf(place)} was deleted`);
    return wanted(pod) ? pod : undefined;
  };
  try {
    // Each turn waits for ready or refused, and gives a refused pod `roomMs`.
    for (;;) {
      using limit = deadline(clock, POD_MS, late, signal);
      const pod = await watch.wait(
        place,
        judge((one) => isReady(one) || isRefused(one)),
        limit.signal,
      );
      if (isReady(pod)) return pod;
      // The scheduler tries again and again, and only its last words are true now.
      let latest = pod;
      remark(place.tag, `the cluster's scheduler had no room at first: ${refusalOf(latest)}`);
      const noRoom = () =>
        new DriverError("capacity", `pod ${nameOf(place)} cannot be scheduled: ${refusalOf(latest)}`);
      using patience = deadline(clock, roomMs, noRoom, signal);
      await watch.wait(
        place,
        judge((one) => {
          latest = one;
          return !isRefused(one);
        }),
        patience.signal,
      );
    }
  } catch (error) {
    // Only the limit of this function is explained. The caller's signal may abort with a timeout too, that of its step.
    if (!(error instanceof DriverError && error.kind === "timeout") || signal.aborted) throw error;
    throw await explained(connection, watch, place, error, signal);
  }
}

function nameOf({ namespace, name }: PodPlace): string {
  return `${namespace}/${name}`;
}

/** The condition of this type, undefined while the cluster has not set it. */
function conditionOf({ status }: Pod, type: string) {
  return status?.conditions?.find((condition) => condition.type === type);
}

/** The pod runs and every container passes its readiness probe. */
export function isReady(pod: Pod): boolean {
  return pod.status?.phase === "Running" && conditionOf(pod, "Ready")?.status === "True";
}

/** The scheduler has found no node for the pod. */
function isRefused(pod: Pod): boolean {
  const { status, reason } = conditionOf(pod, "PodScheduled") ?? {};
  return status === "False" && reason === "Unschedulable";
}

/** The scheduler's own words, which name the missing resource: "0/3 nodes are available: 3 Insufficient cpu". */
function refusalOf(pod: Pod): string {
  return conditionOf(pod, "PodScheduled")?.message ?? "no reason given";
}

/** Whether the pod has ended. `restartPolicy: Never`: it does not start again. */
export function hasEnded({ metadata, status }: Pod): boolean {
  return (
    metadata.deletionTimestamp !== undefined || status?.phase === "Failed" || status?.phase === "Succeeded"
  );
}

/** Waiting reasons of containers that only a change of the configuration can end. */
const HOPELESS: ReadonlySet<string> = new Set([
  "InvalidImageName",
  "ErrImageNeverPull",
  "CreateContainerConfigError",
]);
/** Waiting reasons that retries have not ended: the kubelet backs off after more than one attempt. */
const STUCK: ReadonlySet<string> = new Set([
  "ImagePullBackOff",
  "CrashLoopBackOff",
  "RunContainerError",
  ...HOPELESS,
]);
/** Words in registries' messages for an image that does not exist or may not be pulled. */
const NO_IMAGE = /not found|unknown|denied|unauthorized|forbidden|does not exist/i;

/** Why the pod will not become ready, as the end of a sentence; undefined while it still may. */
function failureOf(pod: Pod): { readonly kind: DriverErrorKind; readonly why: string } | undefined {
  const { status, metadata } = pod;
  // An eviction (drain, preemption, taint) sets this condition before the pod ends, also where status.reason stays empty.
  const disruption = conditionOf(pod, "DisruptionTarget");
  const said = [status?.reason ?? disruption?.reason, status?.message ?? disruption?.message]
    .filter((text) => text !== undefined && text !== "")
    .join(": ");
  // Before the deletion: a pod that has ended is often being deleted as well, and its end is the better reason.
  if (status?.phase === "Failed") {
    const ended = (status.containerStatuses ?? []).map(({ state }) => state?.terminated).find(Boolean);
    const exit =
      ended === undefined ? "" : `its container ended with exit code ${ended.exitCode} ${ended.reason ?? ""}`;
    return {
      kind: "transient",
      why: `it failed: ${[said, exit].filter(Boolean).join("; ") || "no reason given"}`,
    };
  }
  if (status?.phase === "Succeeded")
    return { kind: "configuration", why: "its containers ended; the image's command has to keep running" };
  if (metadata.deletionTimestamp !== undefined)
    return { kind: "transient", why: `it was deleted before it was ready${said === "" ? "" : `: ${said}`}` };
  for (const { name, state } of [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
  ]) {
    const { reason = "", message = "" } = state?.waiting ?? {};
    if (!STUCK.has(reason)) continue;
    const isHopeless = HOPELESS.has(reason) || (reason === "ImagePullBackOff" && NO_IMAGE.test(message));
    const kind = isHopeless ? "configuration" : "transient";
    return { kind, why: `container ${name}: ${reason}${message === "" ? "" : `: ${message}`}` };
  }
  return undefined;
}

/** The fields of a core/v1 Event that are read. */
interface PodEvent {
  readonly type?: string;
  readonly reason: string;
  readonly message?: string;
}

/** Events of the pod. Never rejects but for the signal: without the right to read events, the result is one that says so. */
async function eventsOf(
  connection: Connection,
  { namespace, name }: PodPlace,
  signal: AbortSignal,
): Promise<readonly PodEvent[]> {
  const path = `/api/v1/namespaces/${namespace}/events`;
  const query = { fieldSelector: `involvedObject.name=${name},involvedObject.kind=Pod` };
  try {
    return (await connection.get<{ items: readonly PodEvent[] }>({ path, query, signal })).items;
  } catch (error) {
    signal.throwIfAborted();
    // Events only improve the message. A credential may lack the right to read them.
    return [{ reason: "", message: `its events cannot be read: ${messageOf(error)}` }];
  }
}

/** The timeout error with the pod's warnings, such as a volume that cannot be mounted or a network that is not ready. */
async function explained(
  connection: Connection,
  watch: ObjectWatch<Pod>,
  place: PodPlace,
  error: DriverError,
  signal: AbortSignal,
): Promise<DriverError> {
  const events = await eventsOf(connection, place, signal);
  const warnings = events
    .filter(({ type }) => type !== "Normal")
    .map(({ reason, message }) => `${reason}: ${message}`);
  const phase = watch.get(place.name, place.namespace)?.status?.phase ?? "not there";
  return new DriverError("timeout", [`${error.message}; it is ${phase}`, ...warnings.slice(-2)].join("; "), {
    cause: error,
  });
}
