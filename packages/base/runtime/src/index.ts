export { Batches } from "./batches.ts";
export {
  abortable,
  type Clock,
  type Deadline,
  deadline,
  inTime,
  settledWithin,
  sleep,
  type Timer,
} from "./clock.ts";
export { compareText } from "./compare.ts";
export * from "./defined.ts";
export { lockFile, sqliteCode } from "./edge/file-lock.ts";
export { ignoring, succeeds, syncPath } from "./edge/files.ts";
export { nodeHttp, nodeHttps } from "./edge/node-http.ts";
export { type ServiceState, serviceReporter } from "./edge/service-manager.ts";
export { syncPathSync } from "./edge/sync.ts";
export { systemClock, systemRandom } from "./edge/system.ts";
export { textIfExists } from "./edge/text-file.ts";
export { openTraces, type TraceExport } from "./edge/trace-export.ts";
export { tail, trim, whole } from "./edge/untrusted-files.ts";
export { errorClass, messageOf, NodeyardError } from "./errors.ts";
export { Gate } from "./gate.ts";
export { Heap } from "./heap.ts";
export { issueText, type SchemaIssue, valueAt } from "./issue-text.ts";
export { jsonOrUndefined } from "./json.ts";
export { backoff, hexId, jitter, type Random, seededRandom } from "./random.ts";
export { keepSecret, withoutSecrets } from "./secrets.ts";
export { parseTraceparent, type Span, spanId, type TraceContext, traceparentOf } from "./span.ts";
export { type Moment, StoredTimes } from "./stored-times.ts";
export {
  atLeast,
  type BootTally,
  isDrawn,
  judgeTrial,
  noBoots,
  type Trial,
  type TrialOutcome,
  type TrialRules,
  withBoot,
} from "./trial.ts";
export { TimeStandsStill, VirtualClock } from "./virtual-clock.ts";
export { choices, counted, nearest } from "./words.ts";
