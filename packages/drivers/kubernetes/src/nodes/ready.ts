import { DriverError, type DriverErrorKind, deadline, messageOf, type Tag } from "@nodeyard/driver";
import type { EventList } from "kubernetes-types/core/v1.d.ts";
import type { Connection, KubeObject, ObjectWatch } from "../client/index.ts";
import type { Site } from "../cluster.ts";
import { POD_MS } from "../config.ts";

/** The pod of a node, by its path in the API. */
interface PodPlace {
  readonly tag: Tag;
  readonly namespace: string;
  readonly name: string;
}

/**
 * Resolves to the pod when the watch shows it ready. Rejects with a DriverError when it will not become ready:
 *
 * "capacity" when the scheduler refuses it for `roomMs`, with its last words; "configuration" when only a change of the label can help;
 * "transient" when another attempt may succeed; "not-found" when it was deleted; "timeout" when it has room and is not ready after POD_MS,
 * with its phase and its last two warnings. The caller's abort rejects with the signal's reason. The pod must be in the watch before the
 * call (`note`). The scheduler's words while a pod waits for room are remarked on its node.
 */
export async function podReady(
  { cluster, clock, config, remark }: Pick<Site, "cluster" | "clock" | "config" | "remark">,
  watch: ObjectWatch,
  place: PodPlace,
  signal: AbortSignal,
): Promise<KubeObject> {
  const { roomMs } = config.own;
  const named = `pod ${place.namespace}/${place.name}`;
  const until = async (ms: number, late: () => DriverError, wanted: (pod: KubeObject) => boolean) => {
    using limit = deadline(clock, ms, late, signal);
    // A pod that was deleted is judged by its last state, which has the reason of an eviction.
    const judge = (pod: KubeObject | undefined, last: KubeObject | undefined) => {
      const latest = pod ?? last;
      const failure = latest && failureOf(latest);
      if (failure !== undefined) throw new DriverError(failure.kind, `${named}: ${failure.why}`);
      if (pod === undefined) throw new DriverError("not-found", `${named} was deleted`);
      return wanted(pod) ? pod : undefined;
    };
    return await watch.wait(place, judge, limit.signal);
  };
  const late = () => new DriverError("timeout", `${named} is not ready after ${POD_MS / 1000} s`);
  try {
    // Each turn waits for ready or refused, and gives a refused pod `roomMs`.
    for (;;) {
      const seen = await until(POD_MS, late, (pod) => isReady(pod) || refusalOf(pod) !== undefined);
      if (isReady(seen)) return seen;
      // The scheduler tries again and again, and only its last words are true now.
      let said = refusalOf(seen);
      remark(place.tag, `the cluster's scheduler had no room at first: ${said}`);
      const noRoom = () => new DriverError("capacity", `${named} cannot be scheduled: ${said}`);
      await until(roomMs, noRoom, (pod) => {
        said = refusalOf(pod) ?? said;
        return refusalOf(pod) === undefined;
      });
    }
  } catch (error) {
    // Only the limit of this function is explained. The caller's signal may abort with a timeout too, that of its step.
    if (!(error instanceof DriverError && error.kind === "timeout") || signal.aborted) throw error;
    const phase = watch.get(place.name, place.namespace)?.status?.phase ?? "not there";
    const why = [`${error.message}; it is ${phase}`, ...(await warningsOf(cluster, place, signal))];
    throw new DriverError("timeout", why.join("; "), { cause: error });
  }
}

/** The condition of this type, undefined while the cluster has not set it. */
export function conditionOf({ status }: KubeObject, type: string) {
  return status?.conditions?.find((condition) => condition.type === type);
}

/** The pod runs and every container passes its readiness probe. */
function isReady(pod: KubeObject): boolean {
  return pod.status?.phase === "Running" && conditionOf(pod, "Ready")?.status === "True";
}

/** The scheduler's own words when it finds no node, which name the missing resource: "0/3 nodes are available: 3 Insufficient cpu". */
function refusalOf(pod: KubeObject): string | undefined {
  const { status, reason, message = "no reason given" } = conditionOf(pod, "PodScheduled") ?? {};
  return status === "False" && reason === "Unschedulable" ? message : undefined;
}

/** Whether a pod has ended, or a namespace or pod is being deleted. `restartPolicy: Never`: a pod does not start again. */
export function hasEnded({ metadata, status }: KubeObject): boolean {
  return (
    metadata.deletionTimestamp !== undefined || status?.phase === "Failed" || status?.phase === "Succeeded"
  );
}

/** Waiting reasons of containers that only a change of the configuration can end. */
const HOPELESS = ["InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"];
/** Waiting reasons that retries have not ended: the kubelet backs off after more than one attempt. */
const STUCK = ["ImagePullBackOff", "CrashLoopBackOff", "RunContainerError", ...HOPELESS];
/** Words in registries' messages for an image that does not exist or may not be pulled. */
const NO_IMAGE = /not found|unknown|denied|unauthorized|forbidden|does not exist/i;

/** Why the pod will not become ready, as the end of a sentence; undefined while it still may. */
export function failureOf(
  pod: KubeObject,
): { readonly kind: DriverErrorKind; readonly why: string } | undefined {
  const { phase, reason, message, containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  // An eviction (drain, preemption, taint) sets this condition before the pod ends, also where status.reason stays empty.
  const disruption = conditionOf(pod, "DisruptionTarget");
  const said = [reason ?? disruption?.reason, message ?? disruption?.message].filter(Boolean).join(": ");
  // Before the deletion: a pod that has ended is often being deleted as well, and its end is the better reason.
  if (phase === "Failed") {
    const ended = containerStatuses.map(({ state }) => state?.terminated).find(Boolean);
    const exit = ended && `its container ended with exit code ${ended.exitCode} ${ended.reason ?? ""}`;
    const why = [said, exit].filter(Boolean).join("; ") || "no reason given";
    return { kind: "transient", why: `it failed: ${why}` };
  }
  if (phase === "Succeeded")
    return { kind: "configuration", why: "its containers ended; the image's command has to keep running" };
  if (pod.metadata.deletionTimestamp !== undefined)
    return { kind: "transient", why: `it was deleted before it was ready${said && `: ${said}`}` };
  for (const { name, state } of [...initContainerStatuses, ...containerStatuses]) {
    const { reason: waiting = "", message: words = "" } = state?.waiting ?? {};
    if (!STUCK.includes(waiting)) continue;
    const isHopeless = HOPELESS.includes(waiting) || (waiting === "ImagePullBackOff" && NO_IMAGE.test(words));
    const why = `container ${name}: ${waiting}${words && `: ${words}`}`;
    return { kind: isHopeless ? "configuration" : "transient", why };
  }
  return undefined;
}

/** The pod's last warnings, such as a volume that cannot be mounted. They only improve a message: the right to read them may be missing. */
async function warningsOf(connection: Connection, { namespace, name }: PodPlace, signal: AbortSignal) {
  const query = { fieldSelector: `involvedObject.name=${name},involvedObject.kind=Pod` };
  try {
    const events = { path: `/api/v1/namespaces/${namespace}/events`, query, signal };
    const { items } = await connection.get<EventList>(events);
    const warnings = items.filter(({ type }) => type !== "Normal");
    return warnings.slice(-2).map(({ reason, message }) => `${reason}: ${message}`);
  } catch (error) {
    signal.throwIfAborted();
    return [`its events cannot be read: ${messageOf(error)}`];
  }
}
