/** How a pod behaves under kwok: the value of its annotation `behaviour`. None: it is ready after a moment. */
export type Behaviour = "slow" | "image" | "ends" | "evicted" | "never";

const stage = (
  name: string,
  kind: "Pod" | "Node",
  matches: readonly object[],
  next: object,
  delay?: object,
) => ({
  apiVersion: "kwok.x-k8s.io/v1alpha1",
  kind: "Stage",
  metadata: { name },
  spec: {
    resourceRef: { apiGroup: "v1", kind },
    selector: { matchExpressions: matches },
    ...(delay === undefined ? {} : { delay }),
    next,
  },
});

const has = (key: string, ...values: readonly string[]) => ({ key, operator: "In", values });
const hasNot = (key: string, ...values: readonly string[]) => ({ key, operator: "NotIn", values });
const absent = (key: string) => ({ key, operator: "DoesNotExist" });
const present = (key: string) => ({ key, operator: "Exists" });

const BEHAVIOUR = '.metadata.annotations["behaviour"]';
/** Pods that `process-kubelet.ts` runs as processes are left to it. */
const PLAYED = hasNot('.metadata.labels["app.kubernetes.io/name"]', "nodeyard");
const LIVES = absent(".metadata.deletionTimestamp");
const PENDING = absent(".status.containerStatuses.[].name");
const RUNS = has(".status.phase", "Running");

const containers = (ready: boolean, state: string) => `
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: ${ready}
  restartCount: 0
  state: ${state}
{{ end }}`;

const RUNNING = `{{ $now := Now }}
conditions:
- { type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }} }
- { type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }} }
- { type: ContainersReady, status: "True", lastTransitionTime: {{ $now | Quote }} }
phase: Running
startTime: {{ $now | Quote }}${containers(true, "{ running: { startedAt: {{ $now | Quote }} } }")}`;

const ms = (durationMilliseconds: number, jitterDurationMilliseconds: number) => ({
  durationMilliseconds,
  jitterDurationMilliseconds,
});

/** What kwok does in place of kubelets (kwok.sigs.k8s.io, "Stages Configuration"). */
export const STAGES: readonly object[] = [
  stage("node", "Node", [hasNot('.status.conditions.[] | select( .type == "Ready" ) | .status', "True")], {
    statusTemplate: `{{ $now := Now }}
conditions:
- { type: Ready, status: "True", reason: KubeletReady, lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }} }
phase: Running`,
  }),
  stage(
    "pod-ready",
    "Pod",
    [PLAYED, LIVES, PENDING, hasNot(BEHAVIOUR, "slow", "image", "never")],
    { statusTemplate: RUNNING },
    ms(20, 100),
  ),
  stage(
    "pod-slow",
    "Pod",
    [LIVES, PENDING, has(BEHAVIOUR, "slow")],
    { statusTemplate: RUNNING },
    ms(1000, 4000),
  ),
  stage(
    "pod-image",
    "Pod",
    [LIVES, PENDING, has(BEHAVIOUR, "image")],
    {
      statusTemplate: `phase: Pending${containers(
        false,
        '{ waiting: { reason: ImagePullBackOff, message: "Back-off pulling image: manifest unknown" } }',
      )}`,
    },
    ms(20, 50),
  ),
  stage(
    "pod-ends",
    "Pod",
    [LIVES, RUNS, has(BEHAVIOUR, "ends")],
    {
      statusTemplate: `{{ $now := Now }}
phase: Failed${containers(false, "{ terminated: { exitCode: 137, reason: OOMKilled, finishedAt: {{ $now | Quote }} } }")}`,
    },
    ms(50, 100),
  ),
  stage(
    "pod-evicted",
    "Pod",
    [LIVES, RUNS, has(BEHAVIOUR, "evicted")],
    { statusTemplate: 'phase: Failed\nreason: Evicted\nmessage: "The node was low on resource: memory."' },
    ms(3000, 6000),
  ),
  stage("pod-delete", "Pod", [PLAYED, present(".metadata.deletionTimestamp")], {
    finalizers: { empty: true },
    delete: true,
  }),
];
